// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s
// RUN: recompute-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// The operations that Shardy adds after propagation and during partitioning round-trip as Shardy prints them.

sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @order = <["x"=2, "y"=4], device_ids=[1, 0, 2, 3, 4, 5, 6, 7]>

func.func @collectives(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>}) {
  %0 = sdy.all_gather [{}, {"x"}] %a out_sharding=<@mesh, [{"y"}, {}]> : tensor<16x8xf32>
  %1 = sdy.all_slice [{}, {"x"}] %0 out_sharding=<@mesh, [{"y"}, {"x"}]> {note} : tensor<16x8xf32>
  %2 = sdy.all_to_all [{"y":(2)2}: 0->1] %1 out_sharding=<@mesh, [{"y":(1)2}, {"x", "y":(2)2}]> : tensor<16x8xf32>
  %3 = sdy.collective_permute %1 out_sharding=<@order, [{"y"}, {"x"}]> : tensor<16x8xf32>
  %4 = sdy.all_reduce {"x"} %b out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
  %5 = sdy.reduce_scatter [{}, {"x"}] %b out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x8xf32>
  %6 = sdy.sharded_to_unreduced [{"y"}, {"x"}] %a out_sharding=<@mesh, [{}, {}], unreduced={"x", "y"}> : tensor<16x8xf32>
  %7 = sdy.replicated_to_unreduced {"y"} %b out_sharding=<@mesh, [{}, {}], unreduced={"x", "y"}> : tensor<16x8xf32>
  func.return
}
// CHECK-LABEL: func.func @collectives
// CHECK-NEXT:    %0 = sdy.all_gather [{}, {"x"}] %a out_sharding=<@mesh, [{"y"}, {}]> : tensor<16x8xf32>
// CHECK-NEXT:    %1 = sdy.all_slice [{}, {"x"}] %0 out_sharding=<@mesh, [{"y"}, {"x"}]> {note} : tensor<16x8xf32>
// CHECK-NEXT:    %2 = sdy.all_to_all [{"y":(2)2}: 0->1] %1 out_sharding=<@mesh, [{"y":(1)2}, {"x", "y":(2)2}]> : tensor<16x8xf32>
// CHECK-NEXT:    %3 = sdy.collective_permute %1 out_sharding=<@order, [{"y"}, {"x"}]> : tensor<16x8xf32>
// CHECK-NEXT:    %4 = sdy.all_reduce {"x"} %b out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
// CHECK-NEXT:    %5 = sdy.reduce_scatter [{}, {"x"}] %b out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x8xf32>
// CHECK-NEXT:    %6 = sdy.sharded_to_unreduced [{"y"}, {"x"}] %a out_sharding=<@mesh, [{}, {}], unreduced={"x", "y"}> : tensor<16x8xf32>
// CHECK-NEXT:    %7 = sdy.replicated_to_unreduced {"y"} %b out_sharding=<@mesh, [{}, {}], unreduced={"x", "y"}> : tensor<16x8xf32>
// CHECK-NEXT:    func.return
// GENERIC:       %0 = "sdy.all_gather"(%a) <{gathering_axes = #sdy<list_of_axis_ref_lists[{}, {"x"}]>, out_sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}>
// GENERIC:       %2 = "sdy.all_to_all"(%1) <{params = #sdy<all_to_all_param_list[{"y":(2)2}: 0->1]>, out_sharding =

func.func private @callee(tensor<8xf32>) -> tensor<8xf32>

func.func @edges(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}, %c: tensor<8xf32>) {
  %0 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.propagation_barrier %0 allowed_direction=BACKWARD {note} : tensor<8xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=NONE : tensor<8xf32>
  sdy.sharding_group %2 group_id=21 {note} : tensor<8xf32>
  %3 = stablehlo.add %2, %2 : tensor<8xf32>
  %4 = sdy.data_flow_edge %3 sharding=<@mesh, [{"x", ?}]> : tensor<8xf32>
  %5 = stablehlo.negate %4 : tensor<8xf32>
  %6 = sdy.data_flow_edge %5 : tensor<8xf32>
  %7 = sdy.func_data_flow_edge %c : tensor<8xf32>
  %8 = func.call @callee(%7) : (tensor<8xf32>) -> tensor<8xf32>
  %9 = sdy.func_data_flow_edge %8 {note} : tensor<8xf32>
  func.return
}
// CHECK-LABEL: func.func @edges
// CHECK-NEXT:    %0 = sdy.reshard %a <@mesh, [{}]> : tensor<8xf32>
// CHECK-NEXT:    %1 = sdy.propagation_barrier %0 allowed_direction=BACKWARD {note} : tensor<8xf32>
// CHECK-NEXT:    %2 = sdy.propagation_barrier %1 allowed_direction=NONE : tensor<8xf32>
// CHECK-NEXT:    sdy.sharding_group %2 group_id=21 {note} : tensor<8xf32>
// CHECK-NEXT:    %3 = stablehlo.add %2, %2 : tensor<8xf32>
// CHECK-NEXT:    %4 = sdy.data_flow_edge %3 sharding=<@mesh, [{"x", ?}]> : tensor<8xf32>
// CHECK-NEXT:    %5 = stablehlo.negate %4 : tensor<8xf32>
// CHECK-NEXT:    %6 = sdy.data_flow_edge %5 : tensor<8xf32>
// CHECK-NEXT:    %7 = sdy.func_data_flow_edge %c : tensor<8xf32>
// CHECK-NEXT:    %8 = func.call @callee(%7) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %9 = sdy.func_data_flow_edge %8 {note} : tensor<8xf32>
// GENERIC:       %1 = "sdy.propagation_barrier"(%0) <{allowed_direction = 2 : i32}> {note} : (tensor<8xf32>) -> tensor<8xf32>
// GENERIC:       "sdy.sharding_group"(%2) <{group_id = 21 : i64}> {note} : (tensor<8xf32>) -> ()
