// Barriers, plain and with attributes, around values that come in twice.
module {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.sine %x : tensor<4xf32>
    %1:2 = stablehlo.optimization_barrier %0, %y : tensor<4xf32>, tensor<4xf32>
    %2 = stablehlo.multiply %1#0, %1#1 : tensor<4xf32>
    %3:3 = "stablehlo.optimization_barrier"(%2, %x, %2) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %4 = stablehlo.add %3#0, %3#1 : tensor<4xf32>
    %5 = stablehlo.subtract %3#2, %4 : tensor<4xf32>
    %6 = stablehlo.sine %x : tensor<4xf32>
    %7 = stablehlo.divide %6, %5 : tensor<4xf32>
    %dead = stablehlo.optimization_barrier %7 : tensor<4xf32>
    return %7, %4 : tensor<4xf32>, tensor<4xf32>
  }
}
