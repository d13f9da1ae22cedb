// Effects in order: custom calls, random numbers of a hidden state, tokens, infeed and outfeed.
module @effects {
  func.func public @main(%x: tensor<4xf32>, %low: tensor<f32>, %high: tensor<f32>) -> (tensor<4xf32>, tensor<2xf32>) {
    %shape = stablehlo.constant dense<2> : tensor<1xi64>
    %r = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
    %s = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
    %t = stablehlo.create_token : !stablehlo.token
    %in:2 = "stablehlo.infeed"(%t) {infeed_config = "a", layout = [[0]]} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
    stablehlo.custom_call @write(%in#0) {has_side_effect = true, backend_config = "p=1"} : (tensor<4xf32>) -> ()
    %y = stablehlo.custom_call @read(%x) {has_side_effect = true, api_version = 4 : i32, backend_config = {a = 1 : i64, b = "two"}} : (tensor<4xf32>) -> tensor<4xf32>
    %u = "stablehlo.outfeed"(%y, %in#1) {outfeed_config = "b"} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %v = stablehlo.after_all %t, %u : !stablehlo.token
    %w = "stablehlo.outfeed"(%x, %v) {outfeed_config = "c"} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %pure = stablehlo.custom_call @pure(%y) : (tensor<4xf32>) -> tensor<4xf32>
    %sum = stablehlo.add %pure, %y : tensor<4xf32>
    %d = stablehlo.subtract %r, %s : tensor<2xf32>
    return %sum, %d : tensor<4xf32>, tensor<2xf32>
  }
}
