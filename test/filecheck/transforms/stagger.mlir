// RUN: recompute-opt %s -p recompute-stagger --split-input-file | filecheck %s

// The bits of block1 need only the key: an executor could compute them before block0 runs. They wait for %y0, and later
// operations read the results of the barrier, so that it has an effect. block0 is first and waits for nothing.
func.func @random_bits(%x: tensor<4xf32>, %key: tensor<4xui32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %b0 = stablehlo.not %key : tensor<4xui32> loc("jit(f)/jvp(block0)/not")
  %c0 = stablehlo.xor %b0, %key : tensor<4xui32> loc("jit(f)/jvp(block0)/xor")
  %m0 = stablehlo.convert %c0 : (tensor<4xui32>) -> tensor<4xf32> loc("jit(f)/jvp(block0)/convert")
  %y0 = stablehlo.multiply %x, %m0 : tensor<4xf32> loc("jit(f)/jvp(block0)/mul")
  %b1 = stablehlo.not %key : tensor<4xui32> loc("jit(f)/jvp(block1)/not")
  %c1 = stablehlo.xor %b1, %key : tensor<4xui32> loc("jit(f)/jvp(block1)/xor")
  %m1 = stablehlo.convert %c1 : (tensor<4xui32>) -> tensor<4xi1> loc("jit(f)/jvp(block1)/convert")
  %z1 = stablehlo.sine %y0 : tensor<4xf32> loc("jit(f)/jvp(block1)/sin")
  %y1 = stablehlo.select %m1, %z1, %y0 : tensor<4xi1>, tensor<4xf32> loc("jit(f)/jvp(block1)/select")
  %g0 = stablehlo.multiply %ct, %y1 : tensor<4xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %g1 = stablehlo.select %m1, %g0, %ct : tensor<4xi1>, tensor<4xf32> loc("jit(f)/transpose(jvp(block1))/select")
  %g2 = stablehlo.multiply %g1, %m0 : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y1, %g2 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @random_bits
// CHECK:         %y0 = stablehlo.multiply %x, %m0
// CHECK-NEXT:    [[Y:%\w+]], [[K:%\w+]] = stablehlo.optimization_barrier %y0, %key
// CHECK-NEXT:    %b1 = stablehlo.not [[K]]
// CHECK-NEXT:    %c1 = stablehlo.xor %b1, [[K]]
// CHECK:         %z1 = stablehlo.sine [[Y]]
// CHECK-NEXT:    %y1 = stablehlo.select %m1, %z1, [[Y]]
// CHECK-NOT:     stablehlo.optimization_barrier
