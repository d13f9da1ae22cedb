// Batch norm, convolution, triangular solve, chlo, complex numbers, tuples.
module {
  func.func @main(%x: tensor<1x4x4x2xf32>, %s: tensor<2xf32>, %k: tensor<2x2x2x2xf32>, %m: tensor<2x2xf32>) -> (tensor<1x4x4x2xf32>, tensor<1x3x3x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) {
    %0:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 1.000000e-03 : f32, feature_index = 3 : i64}> : (tensor<1x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1x4x4x2xf32>, tensor<2xf32>, tensor<2xf32>)
    %1 = stablehlo.convolution(%0#0, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<2x2x2x2xf32>) -> tensor<1x3x3x2xf32>
    %2 = "stablehlo.triangular_solve"(%m, %m) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %3 = chlo.erf %s : tensor<2xf32> -> tensor<2xf32>
    %4 = stablehlo.complex %s, %3 : tensor<2xcomplex<f32>>
    %5 = stablehlo.fft %4, type = FFT, length = [2] : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    %6 = stablehlo.real %5 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %7 = stablehlo.tuple %6, %3 : tuple<tensor<2xf32>, tensor<2xf32>>
    %8 = stablehlo.get_tuple_element %7[1] : (tuple<tensor<2xf32>, tensor<2xf32>>) -> tensor<2xf32>
    %values, %indices = chlo.top_k(%6, k = 2) : tensor<2xf32> -> (tensor<2xf32>, tensor<2xi32>)
    return %0#0, %1, %2, %8, %values, %indices : tensor<1x4x4x2xf32>, tensor<1x3x3x2xf32>, tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>
  }
}
