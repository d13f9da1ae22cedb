// RUN: recompute-opt %s -p 'recompute-clone{primal-results=0}' | filecheck %s
// RUN: recompute-opt %s -p 'recompute-clone{cotangents=1}' | filecheck %s
// RUN: recompute-opt %s -p 'recompute-clone{primal-values=%%c}' | filecheck %s
// RUN: not recompute-opt %s -p recompute-clone 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not recompute-opt %s -p 'recompute-clone{primal-results=2}' 2>&1 | filecheck %s --check-prefix=RANGE

// The phases of a step that does not state them follow from the results or values of the forward pass, or from the
// cotangents.

// CHECK:      %b = stablehlo.tanh %a {recompute.recompute = true, recompute.phase = "primal", recompute.id = 0 : i64}
// CHECK:      [[T:%\w+]] = recompute.token %g0 {recompute.phase = "gradient"} : tensor<4xf32>
// CHECK-NEXT: [[A:%\w+]] = recompute.depend %a after [[T]] {recompute.phase = "gradient"} : tensor<4xf32>
// CHECK-NEXT: stablehlo.tanh [[A]] {{.*}}recompute.duplicated
// CHECK-NOT:  recompute.duplicated
// NONE:       error: no gradient found
// RANGE:      error: primal-results=2 is out of range: the function has 2 results, numbered from 0

func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.recompute = true} : tensor<4xf32>
  %c = stablehlo.negate %b : tensor<4xf32>
  %g0 = stablehlo.multiply %ct, %c : tensor<4xf32>
  %g1 = stablehlo.multiply %g0, %b : tensor<4xf32>
  %g2 = stablehlo.multiply %g1, %a : tensor<4xf32>
  func.return %c, %g2 : tensor<4xf32>, tensor<4xf32>
}
