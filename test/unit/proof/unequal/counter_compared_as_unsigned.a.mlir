// The counter is compared as a signed number.
func.func public @main(%x: tensor<2x3xf32>, %w: tensor<4x2x3xf32>) -> tensor<4x2x3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<4> : tensor<i32>
  %s = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<4x2x3xf32>
  %a, %b, %c = stablehlo.while(%i = %i0, %h = %x, %st = %s) : tensor<i32>, tensor<2x3xf32>, tensor<4x2x3xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %t = stablehlo.tanh %h : tensor<2x3xf32>
    %r = stablehlo.reshape %t : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
    %u = stablehlo.dynamic_update_slice %st, %r, %i, %i0, %i0 : (tensor<4x2x3xf32>, tensor<1x2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x2x3xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %u : tensor<i32>, tensor<2x3xf32>, tensor<4x2x3xf32>
  }
  func.return %c : tensor<4x2x3xf32>
}
