// RUN: recompute-opt %s -p recompute 2>&1 >/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{target=none}' 2>&1 >/dev/null | filecheck %s --check-prefix=ORDER
// RUN: recompute-opt %s -p recompute -q 2>&1 >/dev/null | filecheck %s --check-prefix=QUIET
// RUN: recompute-opt %s -p recompute --remarks=text 2>&1 >/dev/null | filecheck %s --check-prefix=DETAILS
// RUN: recompute-opt %s -p recompute --remarks=json --remarks-filter=missed 2>&1 >/dev/null | filecheck %s --check-prefix=QUIET

// By default, one line states the peaks before and after, in program order and, if the target keeps barriers, by the
// XLA:CPU model. With --remarks, the last remark states the effect in more detail.

// CHECK: driver-summary.mlir:16:1: remark: @step: peak 20.0 KiB -> 16.0 KiB in program order, 8.0 KiB -> 4.0 KiB by the XLA:CPU model; 2 operations are recomputed, 2048 FLOPs more
// ORDER: remark: @step: peak 20.0 KiB -> 16.0 KiB in program order; 2 operations are recomputed, 2048 FLOPs more
// QUIET-NOT: @step
// DETAILS-NOT: XLA:CPU;
// DETAILS: @step: peak 20.0 KiB -> 16.0 KiB of temporaries in program order (0.800)

func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
