// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s
// RUN: recompute-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: recompute-opt %s --print-debuginfo | recompute-opt --print-debuginfo | recompute-opt | filecheck %s
// RUN: xdsl-opt %s | filecheck %s

// Regions read outside values directly, and yield their results. A name and attributes may precede a region.
// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT:  %a, %b = recompute.segment "outer" attributes {recompute.output_recompute} {
  // CHECK-NEXT:    %a_1 = stablehlo.sine %x
  // CHECK-NEXT:    %b_1 = recompute.segment "inner" {
  // CHECK-NEXT:      %b_2 = stablehlo.tanh %a_1
  // CHECK-NEXT:      recompute.yield %b_2 : tensor<4xf32>
  // CHECK-NEXT:    } : tensor<4xf32>
  // CHECK-NEXT:    recompute.yield %a_1, %b_1 : tensor<4xf32>, tensor<4xf32>
  // CHECK-NEXT:  } : tensor<4xf32>, tensor<4xf32>
  %a, %b = recompute.segment "outer" attributes {recompute.output_recompute} {
    %a = stablehlo.sine %x : tensor<4xf32>
    %b = recompute.segment "inner" {
      %b = stablehlo.tanh %a : tensor<4xf32>
      recompute.yield %b : tensor<4xf32>
    } : tensor<4xf32>
    recompute.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  // CHECK-NEXT:  recompute.segment attributes {recompute.recompute = false} {
  // CHECK-NEXT:    recompute.yield
  // CHECK-NEXT:  }
  recompute.segment attributes {recompute.recompute = false} {
    recompute.yield
  }
  // CHECK-NEXT:  %g = recompute.gradient {
  // CHECK:         recompute.yield %g_1 : tensor<4xf32>
  // CHECK-NEXT:  } : tensor<4xf32>
  %g = recompute.gradient {
    %t = recompute.token %ct : tensor<4xf32>
    %d = recompute.depend %a after %t : tensor<4xf32>
    %g = stablehlo.multiply %d, %ct : tensor<4xf32>
    recompute.yield %g : tensor<4xf32>
  } : tensor<4xf32>
  func.return %b, %g : tensor<4xf32>, tensor<4xf32>
}
// GENERIC: }) {recompute.segment = "outer", recompute.output_recompute} : () -> (tensor<4xf32>, tensor<4xf32>)
// GENERIC: "recompute.yield"() : () -> ()
// GENERIC-NEXT: }) {recompute.recompute = false} : () -> ()
// GENERIC: %g = "recompute.gradient"() ({
