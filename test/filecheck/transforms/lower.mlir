// RUN: recompute-opt %s -p recompute-lower | filecheck %s
// RUN: recompute-opt %s -p 'recompute-lower{target=none}' | filecheck %s --check-prefix=NONE

// One barrier takes the delayed values and the gradient; later readers of the gradient read its result.
func.func @step(%x: tensor<4xf32>, %ct: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %early = stablehlo.negate %ct : tensor<8xf32>
  %t = recompute.token %ct : tensor<8xf32>
  %d = recompute.depend %x after %t : tensor<4xf32>
  %c = stablehlo.sine %d : tensor<4xf32>
  %late = stablehlo.add %ct, %early : tensor<8xf32>
  func.return %c, %late : tensor<4xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %early = stablehlo.negate %ct
// CHECK-NEXT:    [[B:%\w+]], [[G:%\w+]] = stablehlo.optimization_barrier %x, %ct : tensor<4xf32>, tensor<8xf32>
// CHECK-NEXT:    %c = stablehlo.sine [[B]]
// CHECK-NEXT:    %late = stablehlo.add [[G]], %early
// CHECK-NOT:     recompute.

// NONE-LABEL: func.func @step
// NONE-NEXT:    %early = stablehlo.negate %ct
// NONE-NEXT:    %c = stablehlo.sine %x
// NONE-NEXT:    %late = stablehlo.add %ct, %early
