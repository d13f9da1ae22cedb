// RUN: not recompute-opt %s -p recompute-verify 2>&1 | filecheck %s

// A copy that reads its input as it is would run in the forward pass.
func.func @ungated(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.id = 0 : i64} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %g = stablehlo.negate %ct : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %c = stablehlo.sine %x {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/sin"("model.py":7:3))
  %h = stablehlo.multiply %g, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %a, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK: model.py:7:3: error: this copy of stablehlo.sine reads argument 0 without waiting for a gradient
