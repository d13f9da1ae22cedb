// Unused pure operations, a value computed twice, and orders that matter or do not matter.
module {
  func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %c0 = stablehlo.constant dense<1.0> : tensor<4xf32>
    %c1 = stablehlo.constant dense<[1.0, 1.0, 1.0, 1.0]> : tensor<4xf32>
    %a = stablehlo.add %x, %c0 : tensor<4xf32>
    %b = stablehlo.add %x, %c1 : tensor<4xf32>
    %dead = stablehlo.subtract %a, %b : tensor<4xf32>
    %dead2 = stablehlo.exponential %dead : tensor<4xf32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%i = %zero, %v = %a) : tensor<i32>, tensor<4xf32>
     cond {
      %lt = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %t = stablehlo.tanh %b : tensor<4xf32>
      %u = stablehlo.multiply %v, %t : tensor<4xf32>
      stablehlo.return %next, %u : tensor<i32>, tensor<4xf32>
    }
    %lone = stablehlo.while(%i = %zero) : tensor<i32>
     cond {
      %lt = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    } do {
      stablehlo.return %i : tensor<i32>
    }
    %s = stablehlo.subtract %w#1, %b : tensor<4xf32>
    %m = stablehlo.maximum %a, %b : tensor<4xf32>
    return %s, %m : tensor<4xf32>, tensor<4xf32>
  }
}
