// RUN: recompute-opt %s -p recompute-clone --print-debuginfo | filecheck %s

// Copies and their tokens have the scope of their originals, in the backward pass. Operations without a path have a name.
func.func @places(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp(block0)/attn/sin"("model.py":7:3))
  %b = stablehlo.tanh %a {recompute.recompute = true, recompute.phase = "primal"} : tensor<4xf32> loc("model.py":8:3)
  %d = stablehlo.negate %b : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %b : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %d, %g1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK:      recompute.token %g0 {{.*}}loc([[TOKEN:#loc\d+]])
// CHECK-NEXT: recompute.depend %x {{.*}}loc([[DEPEND:#loc\d+]])
// CHECK-NEXT: stablehlo.sine {{.*}}loc([[SINE:#loc\d+]])
// CHECK-NEXT: stablehlo.tanh {{.*}}loc([[TANH:#loc\d+]])
// CHECK:      [[TOKEN]] = loc("jit(f)/transpose(jvp(block0))/recompute/attn/token"([[SOURCE:#loc\d*]]))
// CHECK-NEXT: [[DEPEND]] = loc("jit(f)/transpose(jvp(block0))/recompute/attn/depend"([[SOURCE]]))
// CHECK-NEXT: [[SINE]] = loc("jit(f)/transpose(jvp(block0))/recompute/attn/sin"([[SOURCE]]))
// CHECK-NEXT: [[TANH]] = loc("transpose(jvp())/recompute/stablehlo.tanh"(
