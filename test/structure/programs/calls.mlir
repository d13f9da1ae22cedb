// Calls: nested, with attributes on every place that takes some, of functions that only act and return nothing.
module @calls attributes {mhlo.num_partitions = 2 : i32} {
  func.func private @act(%x: tensor<4xf32> {mhlo.sharding = "{replicated}"}) attributes {foo.note = "n"} {
    stablehlo.custom_call @log(%x) {has_side_effect = true} : (tensor<4xf32>) -> ()
    return
  }
  func.func private @inner(%x: tensor<4xf32>) -> (tensor<4xf32> {foo.result = 1 : i32}) {
    %0 = stablehlo.sine %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @outer(%x: tensor<4xf32> {foo.arg}, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @inner(%0) {mhlo.frontend_attributes = {a = "b"}} : (tensor<4xf32>) -> tensor<4xf32>
    call @act(%1) {mhlo.frontend_attributes = {c = "d"}} : (tensor<4xf32>) -> ()
    %2 = stablehlo.add %1, %y : tensor<4xf32>
    return %2, %0 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @nobody(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
  func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "a"}, tensor<4xf32>) {
    call @act(%x) : (tensor<4xf32>) -> ()
    %0:2 = call @outer(%x, %x) {foo.call} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1:2 = call @outer(%0#1, %0#0) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %2 = call @other(%1#0) : (tensor<4xf32>) -> tensor<4xf32>
    return %2, %1#1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @other(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
    %0 = call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
