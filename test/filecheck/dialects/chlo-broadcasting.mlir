// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Operands may have different shapes: extents of 1 are repeated to those of the other operand.
func.func @broadcasting(%a: tensor<2x1xf32>, %b: tensor<3xf32>, %i: tensor<2x1xi32>, %j: tensor<3xi32>, %p: tensor<i1>) {
  %0 = chlo.broadcast_add %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = chlo.broadcast_and %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %2 = chlo.broadcast_atan2 %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %3 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>, compare_type = #chlo<comparison_type TOTALORDER>} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  %4 = chlo.broadcast_divide %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %5 = chlo.broadcast_maximum %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %6 = chlo.broadcast_minimum %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %7 = chlo.broadcast_multiply %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %8 = chlo.broadcast_next_after %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %9 = chlo.broadcast_or %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %10 = chlo.broadcast_polygamma %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %11 = chlo.broadcast_power %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %12 = chlo.broadcast_remainder %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %13 = chlo.broadcast_shift_left %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %14 = chlo.broadcast_shift_right_arithmetic %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %15 = chlo.broadcast_shift_right_logical %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %16 = chlo.broadcast_subtract %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %17 = chlo.broadcast_xor %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %18 = chlo.broadcast_zeta %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %19 = chlo.broadcast_complex %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xcomplex<f32>>
  %20 = chlo.broadcast_select %p, %a, %b : (tensor<i1>, tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK-LABEL: func.func @broadcasting
// CHECK-NEXT:    %0 = chlo.broadcast_add %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %1 = chlo.broadcast_and %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %2 = chlo.broadcast_atan2 %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %3 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>, compare_type = #chlo<comparison_type TOTALORDER>} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
// CHECK-NEXT:    %4 = chlo.broadcast_divide %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %5 = chlo.broadcast_maximum %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %6 = chlo.broadcast_minimum %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %7 = chlo.broadcast_multiply %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %8 = chlo.broadcast_next_after %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %9 = chlo.broadcast_or %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %10 = chlo.broadcast_polygamma %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %11 = chlo.broadcast_power %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %12 = chlo.broadcast_remainder %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %13 = chlo.broadcast_shift_left %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %14 = chlo.broadcast_shift_right_arithmetic %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %15 = chlo.broadcast_shift_right_logical %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %16 = chlo.broadcast_subtract %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %17 = chlo.broadcast_xor %i, %j : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %18 = chlo.broadcast_zeta %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %19 = chlo.broadcast_complex %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xcomplex<f32>>
// CHECK-NEXT:    %20 = chlo.broadcast_select %p, %a, %b : (tensor<i1>, tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>

// Explicit broadcast dimensions, unknown ranks and constants round-trip.
func.func @others(%a: tensor<2x3xf32>, %b: tensor<2xf32>, %u: tensor<*xf32>) {
  %0 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  %1 = chlo.broadcast_add %u, %b : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  %2 = chlo.constant dense<1.000000e+00> : tensor<4xf32>
  %3 = "chlo.constant_like"(%a) <{value = 1.000000e+00 : f32}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}
// CHECK-LABEL: func.func @others
// CHECK-NEXT:    %0 = chlo.broadcast_add %a, %b {broadcast_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    %1 = chlo.broadcast_add %u, %b : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
// CHECK-NEXT:    %2 = chlo.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT:    %3 = "chlo.constant_like"(%a) <{value = 1.000000e+00 : f32}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
