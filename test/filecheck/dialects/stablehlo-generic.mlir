// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Operations without a custom form in StableHLO, and calls of foreign functions, are printed in generic form.

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

// Windows and their padding are properties. Padding of zeros is printed as a splat.
func.func @pooling(%x: tensor<2x4x4xf32>, %y: tensor<2x2x2xf32>, %z: tensor<f32>) {
  %0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x2x2xf32>
  %2 = "stablehlo.select_and_scatter"(%x, %y, %z) <{padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>}> ({
  ^bb0(%a_1: tensor<f32>, %b_1: tensor<f32>):
    %3 = stablehlo.compare GE, %a_1, %b_1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }, {
  ^bb0(%a_2: tensor<f32>, %b_2: tensor<f32>):
    %4 = stablehlo.add %a_2, %b_2 : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) {note = "kept"} : (tensor<2x4x4xf32>, tensor<2x2x2xf32>, tensor<f32>) -> tensor<2x4x4xf32>
  return
}
// CHECK-LABEL:  func.func @pooling(%x: tensor<2x4x4xf32>, %y: tensor<2x2x2xf32>, %z: tensor<f32>) {
// CHECK-NEXT:     %0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>}> ({
// CHECK-NEXT:     ^bb0(%a: tensor<f32>, %b: tensor<f32>):
// CHECK-NEXT:       %1 = stablehlo.maximum %a, %b : tensor<f32>
// CHECK-NEXT:       stablehlo.return %1 : tensor<f32>
// CHECK-NEXT:     }) : (tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x2x2xf32>
// CHECK-NEXT:     %2 = "stablehlo.select_and_scatter"(%x, %y, %z) <{padding = dense<0> : tensor<3x2xi64>, window_dimensions = array<i64: 1, 2, 2>, window_strides = array<i64: 1, 2, 2>}> ({
// CHECK-NEXT:     ^bb0(%a_1: tensor<f32>, %b_1: tensor<f32>):
// CHECK-NEXT:       %3 = stablehlo.compare GE, %a_1, %b_1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:       stablehlo.return %3 : tensor<i1>
// CHECK-NEXT:     }, {
// CHECK-NEXT:     ^bb0(%a_2: tensor<f32>, %b_2: tensor<f32>):
// CHECK-NEXT:       %4 = stablehlo.add %a_2, %b_2 : tensor<f32>
// CHECK-NEXT:       stablehlo.return %4 : tensor<f32>
// CHECK-NEXT:     }) {note = "kept"} : (tensor<2x4x4xf32>, tensor<2x2x2xf32>, tensor<f32>) -> tensor<2x4x4xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// A branch may read values from outside, and the symbol of a call in it is resolved.
func.func @branches(%p: tensor<i1>, %i: tensor<i32>, %x: tensor<4xf32>, %k: tensor<4xi32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = func.call @branch(%x) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) {note = "kept"} : (tensor<i1>) -> tensor<4xf32>
  %2 = "stablehlo.case"(%i) ({
    stablehlo.return %0 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  %3, %4 = "stablehlo.sort"(%2, %k) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %5 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %3 : tensor<4xf32>
}
func.func private @branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// CHECK-LABEL:  func.func @branches(%p: tensor<i1>, %i: tensor<i32>, %x: tensor<4xf32>, %k: tensor<4xi32>) -> tensor<4xf32> {
// CHECK-NEXT:     %0 = "stablehlo.if"(%p) ({
// CHECK-NEXT:       %1 = func.call @branch(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:       stablehlo.return %1 : tensor<4xf32>
// CHECK-NEXT:     }, {
// CHECK-NEXT:       stablehlo.return %x : tensor<4xf32>
// CHECK-NEXT:     }) {note = "kept"} : (tensor<i1>) -> tensor<4xf32>
// CHECK-NEXT:     %2 = "stablehlo.case"(%i) ({
// CHECK-NEXT:       stablehlo.return %0 : tensor<4xf32>
// CHECK-NEXT:     }, {
// CHECK-NEXT:       stablehlo.return %x : tensor<4xf32>
// CHECK-NEXT:     }) : (tensor<i32>) -> tensor<4xf32>
// CHECK-NEXT:     %3, %4 = "stablehlo.sort"(%2, %k) <{dimension = 0 : i64, is_stable = true}> ({
// CHECK-NEXT:     ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
// CHECK-NEXT:       %5 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:       stablehlo.return %5 : tensor<i1>
// CHECK-NEXT:     }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
// CHECK-NEXT:     func.return %3 : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @branch(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     func.return %x : tensor<4xf32>
// CHECK-NEXT:   }

// A random generator takes its state as an operand. The symbol of a foreign function is quoted where necessary.
func.func @foreign(%s: tensor<2xui64>, %x: tensor<4xf32>) {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY {note = "kept"} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %2 = stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
  stablehlo.custom_call @"a name"() {has_side_effect = true} : () -> ()
  return
}
// CHECK-LABEL:  func.func @foreign(%s: tensor<2xui64>, %x: tensor<4xf32>) {
// CHECK-NEXT:     %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY {note = "kept"} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
// CHECK-NEXT:     %2 = stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:     stablehlo.custom_call @"a name"() {has_side_effect = true} : () -> ()
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// Transforms and factorizations of matrices round-trip.
func.func @matrices(%x: tensor<4x8xf32>, %c: tensor<4x8xcomplex<f32>>, %a: tensor<4x4xf32>) {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
  %1 = stablehlo.fft %c, type = IFFT, length = [4, 8] {recompute.recompute = true} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  %2 = stablehlo.cholesky %a, lower = true {recompute.recompute = true} : tensor<4x4xf32>
  func.return
}
// CHECK-LABEL: func.func @matrices
// CHECK-NEXT:    %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
// CHECK-NEXT:    %1 = stablehlo.fft %c, type = IFFT, length = [4, 8] {recompute.recompute = true} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
// CHECK-NEXT:    %2 = stablehlo.cholesky %a, lower = true {recompute.recompute = true} : tensor<4x4xf32>
