// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Shardings round-trip as JAX prints them.

sdy.mesh @mesh = <["a"=2, "b"=4]> {stablehlo.mesh = {axes = []}}
sdy.mesh @order = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
sdy.mesh @empty = <[]>
// CHECK:       sdy.mesh @mesh = <["a"=2, "b"=4]> {stablehlo.mesh = {axes = []}}
// CHECK-NEXT:  sdy.mesh @order = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
// CHECK-NEXT:  sdy.mesh @empty = <[]>

func.func @constraint(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %x <@mesh, [{"b":(2)2}, {?}], replicated={"a"}> {recompute.recompute = true} : tensor<8x8xf32>
  func.return %0 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @constraint(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
// CHECK-NEXT:    %0 = sdy.sharding_constraint %x <@mesh, [{"b":(2)2}, {?}], replicated={"a"}> {recompute.recompute = true} : tensor<8x8xf32>

// The region of a manual computation reads only its arguments, which are the parts on one device.
func.func @shard_map(%x: tensor<8x8xf32>, %k: tensor<2xui64>) -> (tensor<8x8xf32>, tensor<2xui64>) {
  %0:2 = sdy.manual_computation(%x, %k) in_shardings=[<@mesh, [{"a", ?}, {}]>, <@mesh, [{?}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>, <@mesh, [{}]>] manual_axes={"a", "b"} (%part: tensor<4x8xf32>, %key: tensor<2xui64>) {
    %1 = stablehlo.slice %part [0:4, 0:2] : (tensor<4x8xf32>) -> tensor<4x2xf32>
    sdy.return {note} %1, %key : tensor<4x2xf32>, tensor<2xui64>
  } {recompute.recompute = false} : (tensor<8x8xf32>, tensor<2xui64>) -> (tensor<8x8xf32>, tensor<2xui64>)
  func.return %0#0, %0#1 : tensor<8x8xf32>, tensor<2xui64>
}
// CHECK-LABEL: func.func @shard_map
// CHECK-NEXT:    %0, %1 = sdy.manual_computation(%x, %k) in_shardings=[<@mesh, [{"a", ?}, {}]>, <@mesh, [{?}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>, <@mesh, [{}]>] manual_axes={"a", "b"} (%part: tensor<4x8xf32>, %key: tensor<2xui64>) {
// CHECK-NEXT:      %2 = stablehlo.slice %part [0:4, 0:2] : (tensor<4x8xf32>) -> tensor<4x2xf32>
// CHECK-NEXT:      sdy.return {note} %2, %key : tensor<4x2xf32>, tensor<2xui64>
// CHECK-NEXT:    } {recompute.recompute = false} : (tensor<8x8xf32>, tensor<2xui64>) -> (tensor<8x8xf32>, tensor<2xui64>)

func.func @nothing() {
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    sdy.return
  } : () -> ()
  func.return
}
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT:    sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
// CHECK-NEXT:      sdy.return
// CHECK-NEXT:    } : () -> ()

func.func @named(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.constant {note} dense<1.000000e+00> : tensor<8xf32>
  %1 = sdy.named_computation<"f">(%x) (%y: tensor<8xf32>) {
    sdy.return %y : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2 = sdy.named_computation<"f">(%1) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{}]>] (%y: tensor<8xf32>) {
    sdy.return %y : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  func.return %2 : tensor<8xf32>
}
// CHECK-LABEL: func.func @named
// CHECK-NEXT:    %0 = sdy.constant {note} dense<1.000000e+00> : tensor<8xf32>
// CHECK-NEXT:    %1 = sdy.named_computation<"f">(%x) (%y: tensor<8xf32>) {
// CHECK-NEXT:      sdy.return %y : tensor<8xf32>
// CHECK-NEXT:    } : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    %2 = sdy.named_computation<"f">(%1) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{}]>] (%y: tensor<8xf32>) {
