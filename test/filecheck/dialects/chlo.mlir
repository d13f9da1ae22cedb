// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// CHLO as JAX prints it: the types of the operands, an arrow, the type of the result.

// An operation on one operand has the type of the operand and of the result.
func.func @unary(%f: tensor<2x3xf32>, %c: tensor<2xcomplex<f32>>) {
  %0 = chlo.acos %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = chlo.acosh %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %2 = chlo.asin %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %3 = chlo.asinh %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %4 = chlo.atan %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %5 = chlo.atanh %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %6 = chlo.bessel_i1e %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %7 = chlo.cosh %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %8 = chlo.digamma %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %9 = chlo.erf %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %10 = chlo.erf_inv %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %11 = chlo.erfc %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %12 = chlo.lgamma %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %13 = chlo.sinh %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %14 = chlo.square %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %15 = chlo.tan %f : tensor<2x3xf32> -> tensor<2x3xf32>
  %16 = chlo.conj %c : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  func.return
}
// CHECK-LABEL: func.func @unary
// CHECK-NEXT:    %0 = chlo.acos %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %1 = chlo.acosh %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %2 = chlo.asin %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %3 = chlo.asinh %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %4 = chlo.atan %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %5 = chlo.atanh %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %6 = chlo.bessel_i1e %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %7 = chlo.cosh %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %8 = chlo.digamma %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %9 = chlo.erf %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %10 = chlo.erf_inv %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %11 = chlo.erfc %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %12 = chlo.lgamma %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %13 = chlo.sinh %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %14 = chlo.square %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %15 = chlo.tan %f : tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %16 = chlo.conj %c : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>

// A test of elements gives a boolean for each of them.
func.func @tests(%f: tensor<2x3xf32>) {
  %0 = chlo.is_inf %f : tensor<2x3xf32> -> tensor<2x3xi1>
  %1 = chlo.is_neg_inf %f : tensor<2x3xf32> -> tensor<2x3xi1>
  %2 = chlo.is_pos_inf %f : tensor<2x3xf32> -> tensor<2x3xi1>
  func.return
}
// CHECK-LABEL: func.func @tests
// CHECK-NEXT:    %0 = chlo.is_inf %f : tensor<2x3xf32> -> tensor<2x3xi1>
// CHECK-NEXT:    %1 = chlo.is_neg_inf %f : tensor<2x3xf32> -> tensor<2x3xi1>
// CHECK-NEXT:    %2 = chlo.is_pos_inf %f : tensor<2x3xf32> -> tensor<2x3xi1>

// An operation on two operands has both types.
func.func @binary(%f: tensor<2x3xf32>, %i: tensor<4xui32>) {
  %0 = chlo.next_after %f, %f : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = chlo.polygamma %f, %f : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %2 = chlo.zeta %f, %f : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  %3 = chlo.mulhi %i, %i {recompute.recompute = true} : tensor<4xui32>, tensor<4xui32> -> tensor<4xui32>
  func.return
}
// CHECK-LABEL: func.func @binary
// CHECK-NEXT:    %0 = chlo.next_after %f, %f : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %1 = chlo.polygamma %f, %f : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %2 = chlo.zeta %f, %f : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:    %3 = chlo.mulhi %i, %i {recompute.recompute = true} : tensor<4xui32>, tensor<4xui32> -> tensor<4xui32>

// `top_k` returns the largest elements of each row and their indices.
func.func @top(%f: tensor<2x3xf32>) {
  %values, %indices = chlo.top_k(%f, k = 2) {recompute.recompute = true} : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
  func.return
}
// CHECK-LABEL: func.func @top
// CHECK-NEXT:    %values, %indices = chlo.top_k(%f, k = 2) {recompute.recompute = true} : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)

// `ragged_dot`, a product in groups of rows, has no custom assembly.
func.func @ragged_dot(%lhs: tensor<11x5xf32>, %rhs: tensor<3x5x7xf32>, %sizes: tensor<3xi32>) -> tensor<11x7xf32> {
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>, precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGHEST>]} : (tensor<11x5xf32>, tensor<3x5x7xf32>, tensor<3xi32>) -> tensor<11x7xf32>
  func.return %0 : tensor<11x7xf32>
}
// CHECK-LABEL: func.func @ragged_dot
// CHECK-NEXT:    %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>, precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGHEST>]}> : (tensor<11x5xf32>, tensor<3x5x7xf32>, tensor<3xi32>) -> tensor<11x7xf32>

// `scan` in reverse computes on the slices of a matrix from the last to the first, and carries a sum.
func.func @scan(%a: tensor<4x3xf32>, %i: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>) {
  %0, %1 = chlo.scan(%a) inits (%i) dimension = 0 attributes {is_reverse = true} {
  ^bb0(%x: tensor<3xf32>, %c: tensor<3xf32>):
    %2 = stablehlo.add %x, %c : tensor<3xf32>
    stablehlo.return %2, %2 : tensor<3xf32>, tensor<3xf32>
  } : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
  func.return %0, %1 : tensor<4x3xf32>, tensor<3xf32>
}
// CHECK-LABEL: func.func @scan
// CHECK-NEXT:    %0, %1 = chlo.scan(%a) inits (%i) dimension=0 attributes {is_reverse = true} {
// CHECK-NEXT:    ^bb0(%x: tensor<3xf32>, %c: tensor<3xf32>):
// CHECK-NEXT:      %2 = stablehlo.add %x, %c : tensor<3xf32>
// CHECK-NEXT:      stablehlo.return %2, %2 : tensor<3xf32>, tensor<3xf32>
// CHECK-NEXT:    } : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
