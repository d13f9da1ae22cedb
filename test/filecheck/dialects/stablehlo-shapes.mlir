// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Operations that move elements, contractions and constants read and print as StableHLO writes them.

// Dimensions, ranges and constants have a custom form. The bits of a constant are kept.
func.func @shapes(%a: tensor<2x6xf32>, %b: tensor<2x1xf32>) {
  %0 = stablehlo.reshape %a : (tensor<2x6xf32>) -> tensor<12xf32>
  %1 = stablehlo.bitcast_convert %a : (tensor<2x6xf32>) -> tensor<2x6x2xf16>
  %2 = stablehlo.broadcast_in_dim %b, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<3x2x6xf32>
  %3 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x6xf32>) -> tensor<6x2xf32>
  %4 = stablehlo.slice %a [0:1, 1:6:2] : (tensor<2x6xf32>) -> tensor<1x3xf32>
  %5 = stablehlo.concatenate %a, %b, dim = 1 {note = "kept"} : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x7xf32>
  %6 = stablehlo.iota dim = 0 : tensor<4xi32>
  %7 = stablehlo.constant {note = "kept"} dense<[0xFF800000, -0.000000e+00]> : tensor<2xf32>
  %s = stablehlo.slice %6 [0:0] : (tensor<4xi32>) -> tensor<0xi32>
  %c = stablehlo.constant dense<1> : tensor<i32>
  %sc = stablehlo.slice %c [] : (tensor<i32>) -> tensor<i32>
  return
}
// CHECK-LABEL:  func.func @shapes(%a: tensor<2x6xf32>, %b: tensor<2x1xf32>) {
// CHECK-NEXT:     %0 = stablehlo.reshape %a : (tensor<2x6xf32>) -> tensor<12xf32>
// CHECK-NEXT:     %1 = stablehlo.bitcast_convert %a : (tensor<2x6xf32>) -> tensor<2x6x2xf16>
// CHECK-NEXT:     %2 = stablehlo.broadcast_in_dim %b, dims = [1, 2] : (tensor<2x1xf32>) -> tensor<3x2x6xf32>
// CHECK-NEXT:     %3 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x6xf32>) -> tensor<6x2xf32>
// CHECK-NEXT:     %4 = stablehlo.slice %a [0:1, 1:6:2] : (tensor<2x6xf32>) -> tensor<1x3xf32>
// CHECK-NEXT:     %5 = stablehlo.concatenate %a, %b, dim = 1 {note = "kept"} : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x7xf32>
// CHECK-NEXT:     %6 = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK-NEXT:     %7 = stablehlo.constant {note = "kept"} dense<[0xFF800000, -0.000000e+00]> : tensor<2xf32>
// CHECK-NEXT:     %s = stablehlo.slice %6 [0:0] : (tensor<4xi32>) -> tensor<0xi32>
// CHECK-NEXT:     %c = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:     %sc = stablehlo.slice %c [] : (tensor<i32>) -> tensor<i32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// Dynamic slices have their start indices as operands.
func.func @dynamic(%a: tensor<4x6xf32>, %u: tensor<1x6xf32>, %i: tensor<i32>) {
  %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 2] {note = "kept"} : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %1 = stablehlo.dynamic_update_slice %a, %u, %i, %i {note = "kept"} : (tensor<4x6xf32>, tensor<1x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
  return
}
// CHECK-LABEL:  func.func @dynamic(%a: tensor<4x6xf32>, %u: tensor<1x6xf32>, %i: tensor<i32>) {
// CHECK-NEXT:     %0 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 2] {note = "kept"} : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
// CHECK-NEXT:     %1 = stablehlo.dynamic_update_slice %a, %u, %i, %i {note = "kept"} : (tensor<4x6xf32>, tensor<1x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// Negative padding removes elements.
func.func @padding(%a: tensor<4x6xf32>, %z: tensor<f32>) {
  %0 = stablehlo.pad %a, %z, low = [1, 0], high = [0, -1], interior = [0, 1] {note = "kept"} : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x10xf32>
  %1 = stablehlo.reverse %a, dims = [1, 0] {note = "kept"} : tensor<4x6xf32>
  return
}
// CHECK-LABEL:  func.func @padding(%a: tensor<4x6xf32>, %z: tensor<f32>) {
// CHECK-NEXT:     %0 = stablehlo.pad %a, %z, low = [1, 0], high = [0, -1], interior = [0, 1] {note = "kept"} : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x10xf32>
// CHECK-NEXT:     %1 = stablehlo.reverse %a, dims = [1, 0] {note = "kept"} : tensor<4x6xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// Empty batching dimensions, and absent precisions and algorithms, are not printed.
func.func @dot(%a: tensor<5x2x3xf32>, %b: tensor<5x3x4xf32>, %v: tensor<3xf32>) {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  %1 = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  %2 = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  %3 = stablehlo.dot_general %v, %v, contracting_dims = [] x [], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> {note = "kept"} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  return
}
// CHECK-LABEL:  func.func @dot(%a: tensor<5x2x3xf32>, %b: tensor<5x3x4xf32>, %v: tensor<3xf32>) {
// CHECK-NEXT:     %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
// CHECK-NEXT:     %1 = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
// CHECK-NEXT:     %2 = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
// CHECK-NEXT:     %3 = stablehlo.dot_general %v, %v, contracting_dims = [] x [], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> {note = "kept"} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// Default properties of a window are not printed.
func.func @convolution(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[0, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, true]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>], note = "kept"} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x8x4xf32>
  %1 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>
  return
}
// CHECK-LABEL:  func.func @convolution(%x: tensor<2x8x8x3xf32>, %w: tensor<3x3x3x4xf32>) {
// CHECK-NEXT:     %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = {{\[\[}}0, 1], [1, 1{{\]\]}}, lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, true]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>], note = "kept"} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x4x8x4xf32>
// CHECK-NEXT:     %1 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x6x6x4xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// `partition_id` and `replica_id` round-trip.
func.func @devices() {
  %0 = stablehlo.partition_id : tensor<ui32>
  %1 = stablehlo.replica_id {note = "kept"} : tensor<ui32>
  return
}
// CHECK-LABEL:  func.func @devices() {
// CHECK-NEXT:     %0 = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT:     %1 = stablehlo.replica_id {note = "kept"} : tensor<ui32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
