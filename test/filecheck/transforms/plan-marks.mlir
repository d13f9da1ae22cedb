// RUN: recompute-opt %s -p 'recompute-plan{budget=40% memory-model=order},recompute-clone,recompute-cse,recompute-lower' --remarks=text 2>&1 >/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-plan{budget=60% memory-model=order},recompute-clone,recompute-cse,recompute-lower' --remarks=text 2>&1 >/dev/null | filecheck %s --check-prefix=KEPT
// RUN: recompute-opt %s -p 'recompute-plan{budget=min memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=MIN

// A plan may copy an operation several times, and marks cannot express that. A remark states the peak of the plan that
// recompute-clone derives from the marks, if it is worse than the plan of the search.

// CHECK:      budget of 40% (14.4 KiB of temporaries): 36.0 KiB -> 12.0 KiB at the peak in program order
// CHECK:      remark: the marks exceed the budget of 40% (14.4 KiB of temporaries), since marks cannot state how often or where an operation is copied: with recompute-clone, 36.0 KiB -> 32.0 KiB at the peak in program order; 6 operations are recomputed, 6144 FLOPs more; the pass recompute with the same budget, or with a plan file, applies the plan itself
// CHECK:      @step: peak 36.0 KiB -> 32.0 KiB of temporaries in program order

// KEPT:       36.0 KiB -> 20.0 KiB at the peak in program order
// KEPT-NOT:   remark: the marks
// KEPT:       @step: peak 36.0 KiB -> 20.0 KiB of temporaries in program order

// MIN:        remark: the marks need more memory than the plan, since marks cannot state

func.func @step(%a0: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a1 = stablehlo.sine %a0 {recompute.phase = "primal"} : tensor<1024xf32>
  %a2 = stablehlo.sine %a1 {recompute.phase = "primal"} : tensor<1024xf32>
  %a3 = stablehlo.sine %a2 {recompute.phase = "primal"} : tensor<1024xf32>
  %a4 = stablehlo.sine %a3 {recompute.phase = "primal"} : tensor<1024xf32>
  %a5 = stablehlo.sine %a4 {recompute.phase = "primal"} : tensor<1024xf32>
  %a6 = stablehlo.sine %a5 {recompute.phase = "primal"} : tensor<1024xf32>
  %a7 = stablehlo.sine %a6 {recompute.phase = "primal"} : tensor<1024xf32>
  %a8 = stablehlo.sine %a7 {recompute.phase = "primal"} : tensor<1024xf32>
  %y = stablehlo.tanh %a8 {recompute.phase = "primal"} : tensor<1024xf32>
  %g7 = stablehlo.multiply %a8, %a7 {recompute.phase = "gradient"} : tensor<1024xf32>
  %g6 = stablehlo.multiply %g7, %a6 {recompute.phase = "gradient"} : tensor<1024xf32>
  %g5 = stablehlo.multiply %g6, %a5 {recompute.phase = "gradient"} : tensor<1024xf32>
  %g4 = stablehlo.multiply %g5, %a4 {recompute.phase = "gradient"} : tensor<1024xf32>
  %g3 = stablehlo.multiply %g4, %a3 {recompute.phase = "gradient"} : tensor<1024xf32>
  %g2 = stablehlo.multiply %g3, %a2 {recompute.phase = "gradient"} : tensor<1024xf32>
  %g1 = stablehlo.multiply %g2, %a1 {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %y, %g1 : tensor<1024xf32>, tensor<1024xf32>
}
