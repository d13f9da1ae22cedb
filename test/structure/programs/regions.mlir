// StableHLO's operations with regions: reducers, comparators, branches.
module {
  func.func @main(%x: tensor<4x8xf32>, %i: tensor<i32>, %p: tensor<i1>, %at: tensor<2x1xi32>, %u: tensor<2x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<f32>, tensor<4x8xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %iota = stablehlo.iota dim = 1 : tensor<4x8xi32>
    %sorted:2 = "stablehlo.sort"(%x, %iota) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %lt = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
    %scattered = "stablehlo.scatter"(%x, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<2x8xf32>) -> tensor<4x8xf32>
    %chosen = "stablehlo.if"(%p) ({
      %n = stablehlo.negate %zero : tensor<f32>
      stablehlo.return %n : tensor<f32>
    }, {
      stablehlo.return %zero : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    %case = "stablehlo.case"(%i) ({
      %n = stablehlo.sine %x : tensor<4x8xf32>
      stablehlo.return %n : tensor<4x8xf32>
    }, {
      %n = stablehlo.cosine %x : tensor<4x8xf32>
      stablehlo.return %n : tensor<4x8xf32>
    }) : (tensor<i32>) -> tensor<4x8xf32>
    return %sum, %sorted#0, %sorted#1, %scattered, %chosen, %case : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<f32>, tensor<4x8xf32>
  }
}
