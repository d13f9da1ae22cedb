// As `manual`, with a call inside the loop of a device.
module @manual attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func private @number() -> tensor<f32> {
    %p = stablehlo.partition_id : tensor<ui32>
    %0 = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @main(%x: tensor<4x8xf32>, %i: tensor<i32>) -> (tensor<4x8xf32>, tensor<f32>) {
    %p = stablehlo.partition_id : tensor<ui32>
    %outside = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
    %n = call @number() : () -> tensor<f32>
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%arg: tensor<2x8xf32>) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %four = stablehlo.constant dense<4> : tensor<i32>
      %w:2 = stablehlo.while(%k = %zero, %v = %arg) : tensor<i32>, tensor<2x8xf32>
       cond {
        %lt = stablehlo.compare LT, %k, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %lt : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %k, %one : tensor<i32>
        %m = func.call @number() : () -> tensor<f32>
        %b = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
        %s = stablehlo.multiply %v, %b : tensor<2x8xf32>
        stablehlo.return %next, %s : tensor<i32>, tensor<2x8xf32>
      }
      %q = stablehlo.partition_id : tensor<ui32>
      %r = stablehlo.convert %q : (tensor<ui32>) -> tensor<f32>
      %t = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
      %u = stablehlo.subtract %w#1, %t : tensor<2x8xf32>
      sdy.return %u : tensor<2x8xf32>
    } : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.add %outside, %n : tensor<f32>
    %2 = stablehlo.multiply %1, %c : tensor<f32>
    return %0, %2 : tensor<4x8xf32>, tensor<f32>
  }
}
