// RUN: recompute-opt %s -p recompute-verify --split-input-file | filecheck %s

// A copy that waits for a gradient and is read in place of its original passes.
func.func @sound(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.id = 0 : i64} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %g = stablehlo.negate %ct : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %t = recompute.token %g : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/token")
  %d = recompute.depend %x after %t : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/depend")
  %c = stablehlo.sine %d {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/sin")
  %h = stablehlo.multiply %g, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %a, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @sound
// CHECK:         recompute.token
