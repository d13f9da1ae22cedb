// Unregistered operations with regions of every form.
module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<1.0> : tensor<4xf32>
    %0 = "foo.loop"(%x, %c) <{mode = "fast"}> ({
    ^bb0(%v: tensor<4xf32>, %w: tensor<4xf32>):
      %a = stablehlo.tanh %v : tensor<4xf32>
      %b = stablehlo.add %a, %w : tensor<4xf32>
      "foo.yield"(%b) {last} : (tensor<4xf32>) -> ()
    }, {
    ^bb0(%v: tensor<4xf32>):
      %a = stablehlo.sine %v : tensor<4xf32>
    }) {steps = 3 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "foo.scope"() ({
      %p = stablehlo.partition_id : tensor<ui32>
      "foo.use"(%p, %0) : (tensor<ui32>, tensor<4xf32>) -> ()
      "foo.scope"() ({
      }, {
      ^bb0(%e: i32):
      }) : () -> ()
    }) : () -> ()
    %1 = "foo.isolated"(%0) ({
    ^bb0(%v: tensor<4xf32>):
      %k = stablehlo.constant dense<2.0> : tensor<4xf32>
      %m = stablehlo.multiply %v, %k : tensor<4xf32>
      stablehlo.return %m : tensor<4xf32>
    }) {foo.attr = #foo.kind<a, "b">, tag = !foo.type<4>} : (tensor<4xf32>) -> tensor<4xf32>
    "foo.silent"() ({
      %q = stablehlo.cosine %x : tensor<4xf32>
    }) : () -> ()
    return %1 : tensor<4xf32>
  }
}
