// Values used before their definition, where an unknown operation allows it.
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    "foo.graph"() ({
      %0 = "foo.a"(%1) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "foo.b"(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    }) : () -> ()
    %y = stablehlo.tanh %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
