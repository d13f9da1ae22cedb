// RUN: recompute-opt %s -p recompute 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK
// RUN: not recompute-opt %s -p 'recompute{strict=true}' 2>&1 >/dev/null | filecheck %s --check-prefix=STRICT
// RUN: recompute-opt %s -p 'recompute{strict=true repeatable=opaque}' -o %t.mlir

// With `strict`, an operation that is marked but must not run twice is an error, also if other operations are recomputed.

func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %o = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sin")
  %a = stablehlo.custom_call @opaque(%o) {recompute.recompute = true} : (tensor<64xf32>) -> tensor<64xf32> loc("jit(f)/jvp(block0)/call")
  %b = stablehlo.tanh %a : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh")
  %c = stablehlo.sine %b : tensor<64xf32> loc("jit(f)/jvp(block1)/sin")
  %d = stablehlo.cosine %c : tensor<64xf32> loc("jit(f)/jvp(block1)/cos")
  %y = stablehlo.tanh %d : tensor<64xf32> loc("jit(f)/jvp(block1)/tanh")
  %e = stablehlo.multiply %ct, %y : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %f = stablehlo.multiply %e, %d : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %g = stablehlo.multiply %f, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %j = stablehlo.multiply %h, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %k = stablehlo.multiply %j, %o : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %k : tensor<64xf32>, tensor<64xf32>
}

// REMARK: remark: stablehlo.custom_call is not recomputed: the custom call @opaque is not known to return the same value
// STRICT: error: stablehlo.custom_call is not recomputed: the custom call @opaque is not known to return the same value {{.*}} (strict)
