// Values that look alike and are not: by type, by attribute, by operand order, by result number, by depth.
module {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>) {
    %a = stablehlo.constant dense<0.0> : tensor<4xf32>
    %b = stablehlo.constant dense<-0.0> : tensor<4xf32>
    %c = stablehlo.constant dense<0x7FC00000> : tensor<4xf32>
    %d = stablehlo.constant dense<0x7FC00001> : tensor<4xf32>
    %0 = stablehlo.subtract %x, %y : tensor<4xf32>
    %1 = stablehlo.subtract %y, %x : tensor<4xf32>
    %2:2 = "foo.two"(%0, %a) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %3:2 = "foo.two"(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:3 = stablehlo.while(%i = %zero, %u = %c, %v = %d) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
     cond {
      %lt = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    } do {
      %z:3 = stablehlo.while(%j = %i, %s = %u, %t = %v) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
       cond {
        %lt = stablehlo.compare LT, %j, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %lt : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %k = stablehlo.add %j, %one : tensor<i32>
        %h = stablehlo.add %s, %u : tensor<4xf32>
        %g = stablehlo.add %t, %s : tensor<4xf32>
        stablehlo.return %k, %g, %h : tensor<i32>, tensor<4xf32>, tensor<4xf32>
      }
      stablehlo.return %z#0, %z#2, %z#1 : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    }
    %5 = stablehlo.compare EQ, %2#1, %3#0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %4 = stablehlo.select %5, %2#0, %3#1 : tensor<4xi1>, tensor<4xf32>
    %6 = stablehlo.add %w#1, %1 : tensor<4xf32>
    return %4, %6, %w#2, %w#0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
  }
}
