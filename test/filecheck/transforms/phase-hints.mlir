// RUN: recompute-opt %s -p 'recompute-phase{primal-results=0}' --split-input-file | filecheck %s
// RUN: recompute-opt %s -p recompute-phase --split-input-file 2>&1 | filecheck %s --check-prefix=GUESS
// RUN: recompute-opt %s -p 'recompute-phase{primal-values=%%y}' --split-input-file | filecheck %s --check-prefix=VALUE

// A loss that is computed last is moved before the gradient, which does not need it.
// GUESS: a guess: the phase of no operation is known, and result 0, the first scalar, is assumed to be the loss; give primal-results=0
func.func @loss_last(%x: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.sine %x : tensor<8xf32>
  %y = stablehlo.tanh %a : tensor<8xf32>
  %g = stablehlo.multiply %y, %a : tensor<8xf32>
  %u = stablehlo.subtract %x, %g : tensor<8xf32>
  %l = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  func.return %l, %u : tensor<f32>, tensor<8xf32>
}
// CHECK-LABEL: func.func @loss_last
// CHECK:         stablehlo.sine {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.tanh {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.reduce{{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.subtract {{.*}} {recompute.phase = "update"}
// A hint can name a value instead of a result.
// VALUE-LABEL: func.func @loss_last
// VALUE:         stablehlo.tanh {{.*}} {recompute.phase = "primal"}
// VALUE-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
