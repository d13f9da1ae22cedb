// Tokens over several values, groups in groups, a depend inside a region, marks everywhere.
module {
  func.func private @block(%x: tensor<4xf32> {recompute.name = "x"}) -> (tensor<4xf32> {recompute.name = "r"}) {
    %0 = stablehlo.sine %x {recompute.phase = "primal"} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @main(%x: tensor<4xf32> {recompute.name = "y"}, %y: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %a = call @block(%x) {recompute.segment = "b"} : (tensor<4xf32>) -> tensor<4xf32>
    %s:2 = "recompute.segment"() ({
      %i = "recompute.segment"() ({
        %m = stablehlo.multiply %a, %y : tensor<4xf32>
        "recompute.yield"(%m) : (tensor<4xf32>) -> ()
      }) : () -> tensor<4xf32>
      %j = stablehlo.subtract %i, %a : tensor<4xf32>
      "recompute.yield"(%j, %i) : (tensor<4xf32>, tensor<4xf32>) -> ()
    }) {recompute.recompute = true} : () -> (tensor<4xf32>, tensor<4xf32>)
    %t = "recompute.token"(%g, %s#1) : (tensor<4xf32>, tensor<4xf32>) -> !recompute.token
    %d:3 = "recompute.depend"(%x, %y, %a, %t) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, !recompute.token) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %b = call @block(%d#0) : (tensor<4xf32>) -> tensor<4xf32>
    %h = stablehlo.divide %b, %d#1 : tensor<4xf32>
    %u = stablehlo.power %d#2, %h : tensor<4xf32>
    return %s#0, %h, %u : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
