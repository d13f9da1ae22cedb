// RUN: recompute-opt %s -p 'recompute-clone' | filecheck %s

// A view, a conversion and a broadcast without marks are recomputed between marked operations, so that none of them pins
// its operand. A mark that keeps one takes precedence.
func.func @step(%x: tensor<64xf32>, %ct: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %v = stablehlo.reshape %a : (tensor<64xf32>) -> tensor<8x8xf32> loc("jit(f)/jvp()/reshape")
  %w = stablehlo.transpose %v, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("jit(f)/jvp()/transpose")
  %b = stablehlo.exponential %w {recompute.recompute = true} : tensor<8x8xf32> loc("jit(f)/jvp()/exp")
  %c = stablehlo.tanh %b : tensor<8x8xf32> loc("jit(f)/jvp()/tanh")
  %g = stablehlo.multiply %ct, %c : tensor<8x8xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %b : tensor<8x8xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %h, %w : tensor<8x8xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %c, %i : tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK:       %0 = recompute.token %g
// CHECK-NEXT:  %x_1 = recompute.depend %x after %0
// CHECK-NEXT:  [[A:%\w+]] = stablehlo.sine %x_1
// CHECK-NEXT:  [[V:%\w+]] = stablehlo.reshape [[A]]
// CHECK-NEXT:  [[W:%\w+]] = stablehlo.transpose [[V]]
// CHECK-NEXT:  [[B:%\w+]] = stablehlo.exponential [[W]]
// CHECK-NEXT:  %h = stablehlo.multiply %g, [[B]]
// CHECK-NEXT:  %i = stablehlo.multiply %h, [[W]]
