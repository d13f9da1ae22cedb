// RUN: recompute-opt %s -p 'recompute{primal-results=1}' 2>&1 >/dev/null | filecheck %s --check-prefix=RESULT
// RUN: recompute-opt %s -p 'recompute{primal-results=0}' --remarks=text 2>&1 >/dev/null | filecheck %s --check-prefix=LOSS
// RUN: recompute-opt %s -p 'recompute{primal-results=0}' --remarks text 2>&1 >/dev/null | filecheck %s --check-prefix=LOSS
// RUN: recompute-opt %s -p 'recompute{primal-results=0}' --remarks json 2>&1 >/dev/null | filecheck %s --check-prefix=JSON
// RUN: recompute-opt %s -p 'recompute{primal-results=0}' 2>&1 >/dev/null | filecheck %s --check-prefix=DEFAULT
// RUN: not recompute-opt %s -p 'recompute{primal-results=2}' 2>&1 >/dev/null | filecheck %s --check-prefix=ARGUMENT
// RUN: recompute-opt %s -p 'recompute{primal-results=0 policy=everything_saveable}' 2>&1 >/dev/null | filecheck %s --check-prefix=PHASES
// RUN: recompute-opt %S/../tools/driver-passed.mlir -p 'recompute{policy=everything_saveable}' 2>&1 >/dev/null | filecheck %s --check-prefix=POLICY
// RUN: recompute-opt %S/../tools/driver-passed.mlir -p 'recompute{segments=none}' 2>&1 >/dev/null | filecheck %s --check-prefix=NONE
// RUN: recompute-opt %S/../tools/driver-passed.mlir -p 'recompute{segment-count=1}' 2>&1 >/dev/null | filecheck %s --check-prefix=COUNT
// RUN: not recompute-opt %S/../tools/driver-passed.mlir -p 'recompute{segments=none strict=true}' 2>&1 >/dev/null | filecheck %s --check-prefix=STRICT

// If nothing is recomputed because of an option, the remark names it and gives a remedy.

// RESULT: remark: nothing is recomputed (with primal-results=1 the forward pass has {{[0-9]+}} operations and the backward pass {{[0-9]+}}: name the loss; result 1 is a tensor<1024xf32>, and most losses are scalars: try primal-results=0): the step is left as it is
// LOSS: remark: @step: peak {{.*}} operations of the result are copies
// JSON: "message": "@step: peak {{.*}} operations of the result are copies
// DEFAULT-NOT: of the result are copies
// DEFAULT: segments by structure, chosen from
// DEFAULT: remark: @step: peak {{.*}} operations are recomputed
// DEFAULT-NOT: of the result are copies
// ARGUMENT: error: no gradient found: with primal-results=2 no operation belongs to the forward pass, because the hint names an argument or a constant
// PHASES: remark: nothing is recomputed (policy=everything_saveable saves every value: choose another policy)
// POLICY: remark: nothing is recomputed (policy=everything_saveable saves every value: choose another policy): the step is left as it is
// NONE: remark: no segments: segments=none selects only marked operations, and none is marked
// NONE: remark: nothing is recomputed (segments=none selects only marked operations: mark operations, or choose segments): the step is left as it is
// COUNT: remark: nothing is recomputed (segment-count=1 makes a single segment, whose values the backward pass reads first: use segment-count=2 or more): the step is left as it is
// STRICT: error: nothing is recomputed (segments=none selects only marked operations: mark operations, or choose segments): the step is left as it is (strict)

func.func @step(%x: tensor<1024xf32>, %w: tensor<1024xf32>) -> (tensor<f32>, tensor<1024xf32>, tensor<1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.sine %x : tensor<1024xf32>
  %b = stablehlo.exponential %a : tensor<1024xf32>
  %c = stablehlo.tanh %b : tensor<1024xf32>
  %d = stablehlo.sine %c : tensor<1024xf32>
  %e = stablehlo.exponential %d : tensor<1024xf32>
  %f = stablehlo.tanh %e : tensor<1024xf32>
  %loss = stablehlo.reduce(%f init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.multiply %f, %e : tensor<1024xf32>
  %h = stablehlo.multiply %g, %d : tensor<1024xf32>
  %h1 = stablehlo.multiply %h, %c : tensor<1024xf32>
  %i = stablehlo.multiply %h1, %b : tensor<1024xf32>
  %j = stablehlo.multiply %i, %a : tensor<1024xf32>
  %new = stablehlo.subtract %w, %j : tensor<1024xf32>
  func.return %loss, %new, %w : tensor<f32>, tensor<1024xf32>, tensor<1024xf32>
}
