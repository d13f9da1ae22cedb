// RUN: recompute-opt %s -p 'recompute{cost=bytes}' 2>&1 | filecheck %s
// RUN: recompute-opt %s -p 'recompute{cost="roofline(h100)"}' 2>&1 | filecheck %s --check-prefix=TIME
// RUN: recompute-opt %s -p recompute 2>&1 | filecheck %s --check-prefix=FLOPS
// RUN: not recompute-opt %s -p 'recompute{cost=seconds}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not recompute-opt %s -p 'recompute{cost=none.json}' 2>&1 | filecheck %s --check-prefix=MISSING

// The cost of recomputed operations is reported in the selected unit; for FLOPs, the default, there is no remark. A tensor
// here is 4 KiB, and the only copied operation moves two of them.
// CHECK:     remark: extra cost by bytes: 8192 bytes, 10.5% of the cost of the step
// TIME:      remark: extra cost by roofline(h100): 0.002446 us on h100, 10.5% of the cost of the step
// FLOPS-NOT: extra cost by
// UNKNOWN:   recompute-costs.mlir:{{.*}} error: unknown cost 'seconds'; expected one of flops, bytes, roofline, roofline(DEVICE), or a cost file whose name ends in .json
// MISSING:   recompute-costs.mlir:{{.*}} error: the cost file none.json cannot be read: No such file or directory
func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %y = stablehlo.tanh %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %d, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
