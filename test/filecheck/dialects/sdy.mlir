// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Shardings as JAX prints them; the bodies are taken along as they stand.

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
