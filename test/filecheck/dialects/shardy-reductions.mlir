// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Reductions other than the sum round-trip. jaxlib 0.10.2 does not read them, so JAX's MLIR is no reference here.

sdy.mesh @mesh = <["x"=2, "y"=4]>

func.func @reductions(%m: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"x"}>}) {
  %0 = sdy.all_reduce max {"x"} %m out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
  %1 = sdy.reduce_scatter max [{}, {"x"}] %m out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x8xf32>
  func.return
}
// CHECK-LABEL: func.func @reductions
// CHECK-NEXT:    %0 = sdy.all_reduce max {"x"} %m out_sharding=<@mesh, [{}, {}]> : tensor<16x8xf32>
// CHECK-NEXT:    %1 = sdy.reduce_scatter max [{}, {"x"}] %m out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x8xf32>
