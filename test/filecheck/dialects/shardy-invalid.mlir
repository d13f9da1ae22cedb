// RUN: recompute-opt %s --split-input-file --verify-diagnostics

// A sharding must have as many dimensions as its tensor.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{has rank 1, but the tensor has rank 2}}
  %0 = sdy.reshard %a <@mesh, [{}]> : tensor<16x8xf32>
  func.return
}

// -----

// The module must define the mesh of a sharding.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{names the mesh @other, but the module does not define it}}
  %0 = sdy.reshard %a <@other, [{}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// The mesh must have every axis of a sharding.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the mesh has no axis "z"}}
  %0 = sdy.reshard %a <@mesh, [{"z"}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// A sharding must not use an axis in two dimensions.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{axis "x" occurs more than once}}
  %0 = sdy.reshard %a <@mesh, [{"x"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// The parts of one axis must not overlap.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the axes "y":(1)2 and "y" overlap}}
  %0 = sdy.reshard %a <@mesh, [{"y":(1)2}, {"y"}]> : tensor<16x8xf32>
  func.return
}

// -----

// The size of a part must divide the size of its axis.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{does not divide the size of the full axis, 4}}
  %0 = sdy.reshard %a <@mesh, [{"y":(1)3}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// Adjacent parts of an axis must be written as one part.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the adjacent sub-axes "y":(1)2 and "y":(2)2 must be merged}}
  %0 = sdy.reshard %a <@mesh, [{"y":(1)2, "y":(2)2}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// Replicated axes must be in the order of the mesh.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{replicated axes must be in the order of the mesh}}
  %0 = sdy.reshard %a <@mesh, [{}, {}], replicated={"y", "x"}> : tensor<16x8xf32>
  func.return
}

// -----

// A reshard must not change the reduction of axes that stay unreduced.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%m: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"x"}>}) {
  // expected-error@+1 {{the operand and the result share unreduced axes, but the reduction changes from 'max' to 'sum'}}
  %0 = sdy.reshard %m <@mesh, [{}, {}], unreduced={"x"}> : tensor<16x8xf32>
  func.return
}

// -----

// An all-gather must gather axes that shard its operand.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{gathering_axes axis "x" is not the last of the operand's axes {"y"}}}
  %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// The result of an all-gather must have the sharding that the gathering leaves.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{dimension 0 of the result is sharded along {}, expected {"y"}}}
  %0 = sdy.all_gather [{}, {"x"}] %a out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// The operand of a collective must have a sharding.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%p: tensor<16x8xf32>) {
  // expected-error@+1 {{the operand of a collective must have a sharding}}
  %0 = sdy.all_gather [{}, {}] %p out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// The list of axes must have an entry for each dimension of the operand.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{but the number of lists of axes is 1}}
  %0 = sdy.all_slice [{}] %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// The result of an all-slice must be sharded along the sliced axes.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%p: tensor<16x8xf32>) {
  // expected-error@+1 {{dimension 0 of the result is sharded along {}, expected {"x"}}}
  %0 = sdy.all_slice [{"x"}, {}] %p out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// An all-to-all must have at least one parameter.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the list of moves must not be empty}}
  %0 = sdy.all_to_all [] %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// The dimensions of an all-to-all must be below the rank of its operand.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{dimension 2 is out of range [0, 2)}}
  %0 = sdy.all_to_all [{"x"}: 1->2] %a out_sharding=<@mesh, [{"y"}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// An all-to-all must not use a dimension twice.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the source and target dimensions [1, 1] must be distinct}}
  %0 = sdy.all_to_all [{"x"}: 1->1] %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// A collective permute must keep the number of parts of each dimension.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{dimension 0 of the result is divided into 2 shards, expected 4, as in the operand}}
  %0 = sdy.collective_permute %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<16x8xf32>
  func.return
}

// -----

// A collective permute must keep the axes of the mesh.
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @axes = <["y"=4, "z"=2]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the meshes @mesh and @axes must have the same axes}}
  %0 = sdy.collective_permute %a out_sharding=<@axes, [{"y"}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// An all-reduce must not reduce along an axis that shards its operand.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{reduction axis "x" overlaps with operand dimension sharding or replicated axes}}
  %0 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// The reduction must be that of the unreduced axes.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%m: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"x"}>}) {
  // expected-error@+1 {{the removed unreduced axes have the reduction 'max', expected 'sum'}}
  %0 = sdy.all_reduce {"x"} %m out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
  func.return
}

// -----

// A reduce-scatter must shard its result along the reduced axes.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%m: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"x"}>}) {
  // expected-error@+1 {{dimension 1 of the result is sharded along {"x"}, expected {"y"}}}
  %0 = sdy.reduce_scatter max [{}, {"y"}] %m out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// The unreduced axes of the result must be those of the operand and of the operation.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the unreduced axes of the result are {}, expected {"y"}, which are the unreduced axes of the operand and the axes of the operation}}
  %0 = sdy.sharded_to_unreduced [{"y"}, {}] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// Replicated axes that become unreduced must not shard the operand.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{r2u axis "x" overlaps with operand dimension sharding}}
  %0 = sdy.replicated_to_unreduced {"x"} %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// `replicated_to_unreduced` must have at least one axis.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) {
  // expected-error@+1 {{the list of axes must not be empty}}
  %0 = sdy.replicated_to_unreduced {} %a out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<16x8xf32>
  func.return
}

// -----

// A propagation barrier must block at least one direction.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%p: tensor<16x8xf32>) {
  // expected-error@+1 {{cannot specify `BOTH` as the direction}}
  %0 = sdy.propagation_barrier %p allowed_direction=BOTH : tensor<16x8xf32>
  func.return
}

// -----

// The operand of a data flow edge must have no other users.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%p: tensor<16x8xf32>) {
  // expected-error@+1 {{the operand of an edge must have no other users}}
  %0 = sdy.func_data_flow_edge %p : tensor<16x8xf32>
  %1 = stablehlo.negate %p : tensor<16x8xf32>
  func.return
}

// -----

// The operand of a data flow edge must not be a result of an operation of Shardy.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%p: tensor<16x8xf32>) {
  %1 = sdy.reshard %p <@mesh, [{}, {}]> : tensor<16x8xf32>
  // expected-error@+1 {{the operand is a result of sdy.reshard, and that operation cannot own an edge}}
  %0 = sdy.data_flow_edge %1 : tensor<16x8xf32>
  func.return
}

// -----

// The operand of a data flow edge must be an argument of a function or a result of a call.
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%p: tensor<16x8xf32>) {
  %1 = stablehlo.negate %p : tensor<16x8xf32>
  // expected-error@+1 {{the operand must be an argument of a function or a result of a call}}
  %0 = sdy.func_data_flow_edge %1 : tensor<16x8xf32>
  func.return
}

// -----

// expected-error@+1 {{axis 'x' has size 0, expected at least 1}}
sdy.mesh @mesh = <["x"=0]>

// -----

// expected-error@+1 {{the axis names of the mesh must be distinct}}
sdy.mesh @mesh = <["x"=2, "x"=2]>

// -----

// expected-error@+1 {{the device ids are [1, 1], expected each id from 0 to 1 once}}
sdy.mesh @mesh = <["x"=2], device_ids=[1, 1]>

// -----

// expected-error@+1 {{the product of the axis sizes is 2, but there are 1 device ids}}
sdy.mesh @mesh = <["x"=2], device_ids=[0]>

// -----

// expected-error@+1 {{a mesh without axes has 2 device ids, expected at most one}}
sdy.mesh @mesh = <[], device_ids=[0, 1]>

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{in_shardings 0: the value in the region has shape [16, 8], expected [8, 8]}}
  sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[] manual_axes={"x"} (%y: tensor<16x8xf32>) {
    sdy.return
  } : (tensor<16x8xf32>) -> ()
  func.return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{in_shardings 0: manual axes must precede free axes in each dimension}}
  sdy.manual_computation(%x) in_shardings=[<@mesh, [{"y", "x"}, {}]>] out_shardings=[] manual_axes={"x"} (%y: tensor<8x8xf32>) {
    sdy.return
  } : (tensor<16x8xf32>) -> ()
  func.return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{in_shardings 0: the mesh has no axis "z"}}
  sdy.manual_computation(%x) in_shardings=[<@mesh, [{}, {"z"}]>] out_shardings=[] manual_axes={"x"} (%y: tensor<16x8xf32>) {
    sdy.return
  } : (tensor<16x8xf32>) -> ()
  func.return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{unknown manual axis: "z"}}
  sdy.manual_computation(%x) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[] manual_axes={"z"} (%y: tensor<16x8xf32>) {
    sdy.return
  } : (tensor<16x8xf32>) -> ()
  func.return
}

// -----

sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%x: tensor<6x8xf32>) {
  // expected-error@+1 {{in_shardings 0: dimension size 6 is not divisible by the manual axes size 4}}
  sdy.manual_computation(%x) in_shardings=[<@mesh, [{"y"}, {}]>] out_shardings=[] manual_axes={"y"} (%y: tensor<4x8xf32>) {
    sdy.return
  } : (tensor<6x8xf32>) -> ()
  func.return
}

// -----

// All shardings of a computation must have the same mesh.
sdy.mesh @first = <["a"=2]>
sdy.mesh @second = <["a"=4]>
func.func @f(%a: tensor<16xf32>) -> tensor<16xf32> {
  // expected-error@+1 {{all in and out shardings must be bound to the same mesh or an empty mesh}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@first, [{}]>] out_shardings=[<@second, [{}]>] manual_axes={"a"} (%b: tensor<16xf32>) {
    sdy.return %b : tensor<16xf32>
  } : (tensor<16xf32>) -> tensor<16xf32>
  func.return %0 : tensor<16xf32>
}
