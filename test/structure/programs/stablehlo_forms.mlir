// Operations with a syntax of their own.
module {
  func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>, %i: tensor<i32>, %s: tensor<1x3xf32>) -> (tensor<2x4xf32>, tensor<2x1xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<4x5xf32>, tensor<2x3xi1>, tensor<2x3xf32>, tensor<4x3xf32>) {
    %0 = stablehlo.dot_general %x, %y, batching_dims = [] x [], contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = stablehlo.slice %x [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>
    %2 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %3 = stablehlo.dynamic_update_slice %x, %s, %i, %i : (tensor<2x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %4 = stablehlo.pad %x, %c, low = [1, 0], high = [1, 2], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x5xf32>
    %5 = stablehlo.compare GE, %x, %3, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %6 = stablehlo.select %5, %x, %3 : tensor<2x3xi1>, tensor<2x3xf32>
    %7 = stablehlo.concatenate %x, %6, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %8 = stablehlo.exponential %6 {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<2x3xf32>
    %9 = stablehlo.convert %8 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %10 = stablehlo.reduce_precision %6, format = e5m10 : tensor<2x3xf32>
    return %0, %1, %2, %3, %4, %5, %10, %7 : tensor<2x4xf32>, tensor<2x1xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<4x5xf32>, tensor<2x3xi1>, tensor<2x3xf32>, tensor<4x3xf32>
  }
}
