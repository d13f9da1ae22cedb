// RUN: not recompute-opt %s -p 'recompute-plan{budget=20% memory-model=order}' 2>&1 | filecheck %s --check-prefix=LEAST
// RUN: not recompute-opt %s -p 'recompute{budget=20% memory-model=order}' 2>&1 | filecheck %s --check-prefix=LEAST
// RUN: not recompute-opt %s -p 'recompute{budget=1B}' 2>&1 | filecheck %s --check-prefix=DEVICE
// RUN: not recompute-opt %s -p 'recompute{budget=much}' 2>&1 | filecheck %s --check-prefix=UNIT
// RUN: not recompute-opt %s -p 'recompute-plan{budget=8apples}' 2>&1 | filecheck %s --check-prefix=APPLES
// RUN: not recompute-opt %s -p 'recompute-plan{budget=150%}' 2>&1 | filecheck %s --check-prefix=SHARE
// RUN: not recompute-opt %s -p 'recompute{budget=50% memory-model=tpu}' 2>&1 | filecheck %s --check-prefix=MODEL
// RUN: not recompute-opt %s -p 'recompute-plan{budget=50% target=tpu}' 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not recompute-opt %s -p 'recompute{budget=50% plan=other.json}' 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: sed 's/x8x/x?x/g' %s > %t.dynamic && not recompute-opt %t.dynamic -p 'recompute{budget=50%}' 2>&1 | filecheck %s --check-prefix=BYTES
// RUN: recompute-opt %s -p 'recompute-plan{budget=70% memory-model=order}' --emit-plan %t.plan >/dev/null 2>&1
// RUN: sed 's/sine %c/cosine %c/' %s > %t.other && not recompute-opt %t.other -p 'recompute{plan=%t.plan}' 2>&1 | filecheck %s --check-prefix=OTHER

// An invalid budget, or one that no plan meets, is an error: with the smallest feasible memory, and the values that determine
// it, if it is proved.

// LEAST:  error: no plan is within the budget of 20% (4.0 KiB of 20.0 KiB of temporaries) in program order: no plan needs less than 12.0 KiB (12288 bytes), which are live while stablehlo.multiply %g ({{.*}}.mlir:34:8) executes: stablehlo.tanh %c ({{.*}}.mlir:31:8): 4.0 KiB, stablehlo.sine %d ({{.*}}.mlir:32:8): 4.0 KiB, stablehlo.multiply %g ({{.*}}.mlir:34:8): 4.0 KiB; the best plan found needs 12.0 KiB (12288 bytes); a share counts temporaries only, without arguments and results
// DEVICE: error: no plan is within the budget of 1B (1 B of device memory): arguments and results of @step, which no plan changes, need 12.0 KiB (12288 bytes)
// UNIT:   error: invalid budget 'much': expected bytes ('8GiB', '500MB'), a share
// APPLES: error: invalid budget '8apples'
// SHARE:  error: invalid budget '150%': a share of the peak of the original step must be above 0 and at most 1
// MODEL:  error: unknown memory model 'tpu'; expected one of order, xla
// TARGET: error: unknown target 'tpu'
// BOTH:   error: recompute: give plan or budget, not both
// BYTES:  error: the size in bytes of tensor<16x?x8xf32> is unknown; recomputation needs static shapes: lower the step
// OTHER:  error: the plan is for another program

func.func @step(%x: tensor<16x8x8xf32>) -> (tensor<16x8x8xf32>, tensor<16x8x8xf32>) {
  %a = stablehlo.sine %x {recompute.phase = "primal"} : tensor<16x8x8xf32>
  %b = stablehlo.exponential %a {recompute.phase = "primal"} : tensor<16x8x8xf32>
  %c = stablehlo.tanh %b {recompute.phase = "primal"} : tensor<16x8x8xf32>
  %d = stablehlo.sine %c {recompute.phase = "primal"} : tensor<16x8x8xf32>
  %y = stablehlo.tanh %d {recompute.phase = "primal"} : tensor<16x8x8xf32>
  %g = stablehlo.multiply %d, %c {recompute.phase = "gradient"} : tensor<16x8x8xf32>
  %h = stablehlo.multiply %g, %b {recompute.phase = "gradient"} : tensor<16x8x8xf32>
  %i = stablehlo.multiply %h, %a {recompute.phase = "gradient"} : tensor<16x8x8xf32>
  func.return %y, %i : tensor<16x8x8xf32>, tensor<16x8x8xf32>
}
