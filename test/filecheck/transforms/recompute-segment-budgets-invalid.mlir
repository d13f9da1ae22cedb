// RUN: not recompute-opt %s -p 'recompute{segment-budgets="block1:50%"}' 2>&1 | filecheck %s --check-prefix=EARLY
// RUN: not recompute-opt %s -p 'recompute{segment-budgets="blok0:50%"}' 2>&1 | filecheck %s --check-prefix=NEAR
// RUN: not recompute-opt %s -p 'recompute{segment-budgets="attention:50%"}' 2>&1 | filecheck %s --check-prefix=FAR
// RUN: not recompute-opt %s -p 'recompute-mark{segment-budgets="block0:2apples"}' 2>&1 | filecheck %s --check-prefix=APPLES
// RUN: not recompute-opt %s -p 'recompute-plan{segment-budgets="block0"}' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not recompute-opt %s -p 'recompute{segment-budgets="block0:50%" plan=some.json}' 2>&1 | filecheck %s --check-prefix=PLAN
// RUN: sed 's/multiply %h, %a/multiply %h, %c/; s/tanh %e/tanh %c/' %s > %t.output && not recompute-opt %t.output -p 'recompute{segment-budgets="block0:1KiB"}' 2>&1 | filecheck %s --check-prefix=OUTPUT
// RUN: not recompute-opt %s -p 'recompute{segment-budgets="block0:50%" budget=40% memory-model=order}' 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not recompute-opt %s -p 'recompute-loops{segment-budgets="block0:50%"}' 2>&1 | filecheck %s --check-prefix=LOOPS

// An infeasible segment budget is reported with the values that determine the minimum; an invalid budget or name is an error.

// EARLY:      segment-budgets-invalid.mlir:{{\d+}}:{{\d+}}: error: segment 'block1' cannot save as little as 4.0 KiB (4096 bytes) (block1:50%): the proven minimum is 8.0 KiB (8192 bytes);
// EARLY-SAME: stablehlo.sine %d, 4.0 KiB (4096 bytes): it is read before any gradient value exists that could delay its copy
// NEAR:       error: segment-budgets: no segment matches 'blok0'; similar segments are: block0, block1
// FAR:        error: segment-budgets: no segment matches 'attention'; the scopes are: block0, block1
// APPLES:     error: segment-budgets: block0: invalid budget '2apples': expected bytes ('8GiB', '500MB')
// NONE:       error: segment-budgets: invalid segment budget 'block0': expected PATTERN:LIMIT, such as 'layer*:30%' or 'head:8MiB'
// PLAN:       error: recompute: plan and segment-budgets both select the values to recompute: give one of them
// OUTPUT:     error: segment 'block0' cannot save as little as 1.0 KiB (1024 bytes) (block0:1KiB): the proven minimum is 4.0 KiB (4096 bytes);
// OUTPUT-SAME: stablehlo.tanh %c, 4.0 KiB (4096 bytes): the forward pass reads it after the segment, so it is kept
// LOOPS:      error: segment-budgets does not apply to loops: limit their stacks with loops="keep(30%)"
// BOTH:       error: {{.*}}the segment budgets are planned first, so nothing is proved about other plans: {{.*}}no plan needs less than

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
