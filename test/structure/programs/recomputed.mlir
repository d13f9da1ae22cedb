// What this project adds: tokens, groups and marks. To the judge they are unknown operations.
module {
  func.func @main(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = "recompute.segment"() ({
      %s = stablehlo.sine %x {recompute.id = 0 : i64} : tensor<4xf32>
      "recompute.yield"(%s) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    %y = stablehlo.exponential %a {recompute.checkpoint} : tensor<4xf32>
    %t = "recompute.token"(%g) : (tensor<4xf32>) -> !recompute.token
    %later = "recompute.depend"(%x, %t) : (tensor<4xf32>, !recompute.token) -> tensor<4xf32>
    %h = "recompute.gradient"() ({
      %s = stablehlo.sine %later {recompute.id = 0 : i64, recompute.copy = 1 : i64} : tensor<4xf32>
      %m = stablehlo.multiply %s, %g : tensor<4xf32>
      "recompute.yield"(%m) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    return %y, %h : tensor<4xf32>, tensor<4xf32>
  }
}
