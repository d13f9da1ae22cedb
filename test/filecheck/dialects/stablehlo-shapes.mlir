// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Operations that move elements, contractions and constants read and print as StableHLO writes them.

// Dimensions, ranges and constants are in the custom form; the bits of a constant stay.
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

// Batching dimensions are left out where there are none, precision and algorithm where none is asked for.
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

// Gather and scatter have no custom form.
func.func @indexing(%table: tensor<32x16xf32>, %i: tensor<8x1xi32>, %u: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<32x16xf32>) {
  %0 = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<32x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>
  %1 = "stablehlo.scatter"(%table, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {note = "kept"} : (tensor<32x16xf32>, tensor<8x1xi32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<32x16xf32>
}
// CHECK-LABEL:  func.func @indexing(%table: tensor<32x16xf32>, %i: tensor<8x1xi32>, %u: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<32x16xf32>) {
// CHECK-NEXT:     %0 = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<32x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>
// CHECK-NEXT:     %1 = "stablehlo.scatter"(%table, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
// CHECK-NEXT:     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
// CHECK-NEXT:       %2 = stablehlo.add %a, %b : tensor<f32>
// CHECK-NEXT:       stablehlo.return %2 : tensor<f32>
// CHECK-NEXT:     }) {note = "kept"} : (tensor<32x16xf32>, tensor<8x1xi32>, tensor<8x16xf32>) -> tensor<32x16xf32>
// CHECK-NEXT:     func.return %0, %1 : tensor<8x16xf32>, tensor<32x16xf32>
// CHECK-NEXT:   }
