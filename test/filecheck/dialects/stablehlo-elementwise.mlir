// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Elementwise operations read and print as StableHLO writes them.

// If the operand and the result have one type, it is written once.
func.func @unary(%f: tensor<2x3xf32>, %i: tensor<4xi32>, %c: tensor<2xcomplex<f32>>) {
  %0 = stablehlo.cbrt %f : tensor<2x3xf32>
  %1 = stablehlo.ceil %f : tensor<2x3xf32>
  %2 = stablehlo.cosine %f : tensor<2x3xf32>
  %3 = stablehlo.count_leading_zeros %i : tensor<4xi32>
  %4 = stablehlo.exponential %f {result_accuracy = #stablehlo.result_accuracy<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
  %5 = stablehlo.exponential_minus_one %f : tensor<2x3xf32>
  %6 = stablehlo.floor %f : tensor<2x3xf32>
  %7 = stablehlo.log %f : tensor<2x3xf32>
  %8 = stablehlo.log_plus_one %f : tensor<2x3xf32>
  %9 = stablehlo.logistic %f : tensor<2x3xf32>
  %10 = stablehlo.negate %c : tensor<2xcomplex<f32>>
  %11 = stablehlo.not %i : tensor<4xi32>
  %12 = stablehlo.popcnt %i : tensor<4xi32>
  %13 = stablehlo.round_nearest_afz %f : tensor<2x3xf32>
  %14 = stablehlo.round_nearest_even %f : tensor<2x3xf32>
  %15 = stablehlo.rsqrt %f : tensor<2x3xf32>
  %16 = stablehlo.sign %f : tensor<2x3xf32>
  %17 = stablehlo.sine %f : tensor<2x3xf32>
  %18 = stablehlo.sqrt %f : tensor<2x3xf32>
  %19 = stablehlo.tan %f : tensor<2x3xf32>
  %20 = stablehlo.tanh %f : tensor<2x3xf32>
  return
}
// CHECK-LABEL:  func.func @unary(%f: tensor<2x3xf32>, %i: tensor<4xi32>, %c: tensor<2xcomplex<f32>>) {
// CHECK-NEXT:     %0 = stablehlo.cbrt %f : tensor<2x3xf32>
// CHECK-NEXT:     %1 = stablehlo.ceil %f : tensor<2x3xf32>
// CHECK-NEXT:     %2 = stablehlo.cosine %f : tensor<2x3xf32>
// CHECK-NEXT:     %3 = stablehlo.count_leading_zeros %i : tensor<4xi32>
// CHECK-NEXT:     %4 = stablehlo.exponential %f {result_accuracy = #stablehlo.result_accuracy<ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
// CHECK-NEXT:     %5 = stablehlo.exponential_minus_one %f : tensor<2x3xf32>
// CHECK-NEXT:     %6 = stablehlo.floor %f : tensor<2x3xf32>
// CHECK-NEXT:     %7 = stablehlo.log %f : tensor<2x3xf32>
// CHECK-NEXT:     %8 = stablehlo.log_plus_one %f : tensor<2x3xf32>
// CHECK-NEXT:     %9 = stablehlo.logistic %f : tensor<2x3xf32>
// CHECK-NEXT:     %10 = stablehlo.negate %c : tensor<2xcomplex<f32>>
// CHECK-NEXT:     %11 = stablehlo.not %i : tensor<4xi32>
// CHECK-NEXT:     %12 = stablehlo.popcnt %i : tensor<4xi32>
// CHECK-NEXT:     %13 = stablehlo.round_nearest_afz %f : tensor<2x3xf32>
// CHECK-NEXT:     %14 = stablehlo.round_nearest_even %f : tensor<2x3xf32>
// CHECK-NEXT:     %15 = stablehlo.rsqrt %f : tensor<2x3xf32>
// CHECK-NEXT:     %16 = stablehlo.sign %f : tensor<2x3xf32>
// CHECK-NEXT:     %17 = stablehlo.sine %f : tensor<2x3xf32>
// CHECK-NEXT:     %18 = stablehlo.sqrt %f : tensor<2x3xf32>
// CHECK-NEXT:     %19 = stablehlo.tan %f : tensor<2x3xf32>
// CHECK-NEXT:     %20 = stablehlo.tanh %f : tensor<2x3xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// If all types are equal, one is written. If they differ, as with a dynamic extent, all are written.
func.func @binary(%f: tensor<4xf32>, %i: tensor<4xi32>, %d: tensor<?xf32>, %s: tensor<f32>, %p: tensor<i1>) {
  %0 = stablehlo.add %f, %f : tensor<4xf32>
  %1 = stablehlo.and %i, %i : tensor<4xi32>
  %2 = stablehlo.atan2 %f, %f : tensor<4xf32>
  %3 = stablehlo.divide %f, %f : tensor<4xf32>
  %4 = stablehlo.maximum %f, %f : tensor<4xf32>
  %5 = stablehlo.minimum %f, %f : tensor<4xf32>
  %6 = stablehlo.multiply %f, %f : tensor<4xf32>
  %7 = stablehlo.or %i, %i : tensor<4xi32>
  %8 = stablehlo.power %f, %f : tensor<4xf32>
  %9 = stablehlo.remainder %i, %i : tensor<4xi32>
  %10 = stablehlo.shift_left %i, %i : tensor<4xi32>
  %11 = stablehlo.shift_right_arithmetic %i, %i : tensor<4xi32>
  %12 = stablehlo.shift_right_logical %i, %i : tensor<4xi32>
  %13 = stablehlo.subtract %d, %f : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
  %14 = stablehlo.xor %i, %i : tensor<4xi32>
  %15 = stablehlo.compare LT, %f, %f, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %16 = stablehlo.compare EQ, %f, %f {note = "kept"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %17 = stablehlo.select %16, %f, %f : tensor<4xi1>, tensor<4xf32>
  %18 = stablehlo.select %p, %d, %f : (tensor<i1>, tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
  %19 = stablehlo.clamp %s, %f, %s : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %20 = stablehlo.clamp %f, %f, %f : tensor<4xf32>
  return
}
// CHECK-LABEL:  func.func @binary(%f: tensor<4xf32>, %i: tensor<4xi32>, %d: tensor<?xf32>, %s: tensor<f32>, %p: tensor<i1>) {
// CHECK-NEXT:     %0 = stablehlo.add %f, %f : tensor<4xf32>
// CHECK-NEXT:     %1 = stablehlo.and %i, %i : tensor<4xi32>
// CHECK-NEXT:     %2 = stablehlo.atan2 %f, %f : tensor<4xf32>
// CHECK-NEXT:     %3 = stablehlo.divide %f, %f : tensor<4xf32>
// CHECK-NEXT:     %4 = stablehlo.maximum %f, %f : tensor<4xf32>
// CHECK-NEXT:     %5 = stablehlo.minimum %f, %f : tensor<4xf32>
// CHECK-NEXT:     %6 = stablehlo.multiply %f, %f : tensor<4xf32>
// CHECK-NEXT:     %7 = stablehlo.or %i, %i : tensor<4xi32>
// CHECK-NEXT:     %8 = stablehlo.power %f, %f : tensor<4xf32>
// CHECK-NEXT:     %9 = stablehlo.remainder %i, %i : tensor<4xi32>
// CHECK-NEXT:     %10 = stablehlo.shift_left %i, %i : tensor<4xi32>
// CHECK-NEXT:     %11 = stablehlo.shift_right_arithmetic %i, %i : tensor<4xi32>
// CHECK-NEXT:     %12 = stablehlo.shift_right_logical %i, %i : tensor<4xi32>
// CHECK-NEXT:     %13 = stablehlo.subtract %d, %f : (tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %14 = stablehlo.xor %i, %i : tensor<4xi32>
// CHECK-NEXT:     %15 = stablehlo.compare LT, %f, %f, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT:     %16 = stablehlo.compare EQ, %f, %f {note = "kept"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT:     %17 = stablehlo.select %16, %f, %f : tensor<4xi1>, tensor<4xf32>
// CHECK-NEXT:     %18 = stablehlo.select %p, %d, %f : (tensor<i1>, tensor<?xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     %19 = stablehlo.clamp %s, %f, %s : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK-NEXT:     %20 = stablehlo.clamp %f, %f, %f : tensor<4xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// If the result has another element type, both types are written, except for complex numbers.
func.func @representation(%f: tensor<2x3xf32>, %i: tensor<4xi32>, %c: tensor<2xcomplex<f32>>, %r: tensor<2xf32>) {
  %0 = stablehlo.abs %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  %1 = stablehlo.convert %i : (tensor<4xi32>) -> tensor<4xf32>
  %2 = stablehlo.real %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  %3 = stablehlo.imag %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
  %4 = stablehlo.complex %r, %r {note = "kept"} : tensor<2xcomplex<f32>>
  %5 = stablehlo.is_finite %f : (tensor<2x3xf32>) -> tensor<2x3xi1>
  %6 = stablehlo.reduce_precision %f, format = e5m10 {note = "kept"} : tensor<2x3xf32>
  return
}
// CHECK-LABEL:  func.func @representation(%f: tensor<2x3xf32>, %i: tensor<4xi32>, %c: tensor<2xcomplex<f32>>, %r: tensor<2xf32>) {
// CHECK-NEXT:     %0 = stablehlo.abs %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
// CHECK-NEXT:     %1 = stablehlo.convert %i : (tensor<4xi32>) -> tensor<4xf32>
// CHECK-NEXT:     %2 = stablehlo.real %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
// CHECK-NEXT:     %3 = stablehlo.imag %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
// CHECK-NEXT:     %4 = stablehlo.complex %r, %r {note = "kept"} : tensor<2xcomplex<f32>>
// CHECK-NEXT:     %5 = stablehlo.is_finite %f : (tensor<2x3xf32>) -> tensor<2x3xi1>
// CHECK-NEXT:     %6 = stablehlo.reduce_precision %f, format = e5m10 {note = "kept"} : tensor<2x3xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
