// Shardy: meshes, constraints that are read and that are not, a manual computation.
module @sharding {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  sdy.mesh @spare = <["z"=4]>
  func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %y: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}]>}) {
    %0 = sdy.sharding_constraint %x <@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
    %1 = sdy.sharding_constraint %y <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
    %2 = stablehlo.dot_general %0, %y, contracting_dims = [1] x [0], precision = [DEFAULT, HIGH] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = sdy.manual_computation(%2) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg: tensor<4x8xf32>) {
      %p = stablehlo.partition_id : tensor<ui32>
      %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
      %s = stablehlo.add %arg, %b : tensor<4x8xf32>
      sdy.return %s : tensor<4x8xf32>
    } : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = stablehlo.sine %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
    return %4 : tensor<8x8xf32>
  }
}
