// check: verifies
// request: segments=* target=stablehlo
// Two twins, one recomputed and one held: a CSE merged them, and the copy was for nothing.
builtin.module @jit_step {
  func.func public @main(%x: tensor<32x8xf32> loc(unknown), %ct: tensor<32x8xf32> loc(unknown)) -> tensor<32x8xf32> {
    %v16 = stablehlo.tanh %x {recompute.recompute = true} : tensor<32x8xf32> loc(#loc1)
    %v17 = stablehlo.negate %v16 {recompute.recompute = "prefer_recompute"} : tensor<32x8xf32> loc(#loc3)
    %v18 = stablehlo.tanh %x {recompute.recompute = true} : tensor<32x8xf32> loc(#loc5)
    %v20 = stablehlo.multiply %ct, %v18 : tensor<32x8xf32> loc(#loc7)
    %v32 = stablehlo.multiply %v20, %v16 : tensor<32x8xf32> loc(#loc8)
    %v33 = stablehlo.add %v17, %v32 : tensor<32x8xf32> loc(#loc9)
    %v52 = stablehlo.multiply %x, %v33 : tensor<32x8xf32> loc(#loc7)
    func.return %v52 : tensor<32x8xf32> loc(#loc10)
  } loc(#loc11)
} loc(#loc12)
#loc = loc("model.py":1006:5)
#loc1 = loc("jit(step)/jvp(layer)/tanh"(#loc))
#loc2 = loc("model.py":1007:5)
#loc3 = loc("jit(step)/jvp(layer)/neg"(#loc2))
#loc4 = loc("model.py":1008:5)
#loc5 = loc("jit(step)/jvp(layer)/tanh"(#loc4))
#loc6 = loc("model.py":1009:5)
#loc7 = loc("jit(step)/transpose(jvp(layer))/mul"(#loc6))
#loc8 = loc("jit(step)/transpose(jvp(layer))/mul"(#loc))
#loc9 = loc("jit(step)/transpose(jvp(layer))/add"(#loc))
#loc10 = loc("seed-20262747.mlir":89:5)
#loc11 = loc("seed-20262747.mlir":2:3)
#loc12 = loc("seed-20262747.mlir":1:1)
