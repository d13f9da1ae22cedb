// Public functions that call each other, private ones that are the same by text.
module @many {
  func.func private @a(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @b(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @first(%x: tensor<f32> {jax.buffer_donor = true}) -> tensor<f32> {
    %0 = call @a(%x) : (tensor<f32>) -> tensor<f32>
    %1 = call @b(%0) : (tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func @second(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = call @first(%x) : (tensor<f32>) -> tensor<f32>
    %1 = call @first(%y) : (tensor<f32>) -> tensor<f32>
    return %1, %0 : tensor<f32>, tensor<f32>
  }
  func.func @third(%x: tensor<f32>) -> tensor<f32> attributes {foo.third} {
    %0 = "foo.run"(%x) ({
    ^bb0(%v: tensor<f32>):
      %1 = stablehlo.sine %v : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    %2:2 = call @second(%0, %x) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    return %2#0 : tensor<f32>
  }
}
