// Functions that attributes name: composites, called computations, symbols of functions as values.
module {
  func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @reducer(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.maximum %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.composite "foo.square" %x {composite_attributes = {a = 1 : i32}, decomposition = @square, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.custom_call @reduce(%0) {called_computations = [@reducer]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = call @square(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %f = constant @reducer : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %2 : tensor<4xf32>
  }
}
