// RUN: recompute-opt %s -p 'recompute-plan{budget=70% memory-model=order}' --emit-plan %t.plan 2>%t.remarks | filecheck %s
// RUN: filecheck %s --check-prefix=REMARKS --input-file %t.remarks
// RUN: recompute-opt %s -p 'recompute{plan=%t.plan}' 2>/dev/null > %t.planned
// RUN: recompute-opt %s -p 'recompute{budget=70% memory-model=order}' 2>/dev/null > %t.budget
// RUN: diff %t.planned %t.budget
// RUN: filecheck %s --check-prefix=DONE --input-file %t.budget
// RUN: recompute-opt %s -p 'recompute-plan{budget=70% memory-model=order},recompute' 2>/dev/null | filecheck %s --check-prefix=DONE
// RUN: xdsl-opt %s -p 'recompute{budget="70%" memory-model=order}' 2>/dev/null | filecheck %s --check-prefix=DONE
// RUN: xdsl-opt %s -p 'recompute{budget=8GiB}' 2>/dev/null | filecheck %s --check-prefix=LEFT
// RUN: recompute-opt %s -p 'recompute-plan{budget=8GiB}' 2>&1 | filecheck %s --check-prefix=LEFT
// RUN: recompute-opt %s -p 'recompute{budget=1.5GiB}' 2>&1 | filecheck %s --check-prefix=LEFT
// RUN: recompute-opt %s -p 'recompute-plan{budget=min target=none}' 2>&1 | filecheck %s --check-prefix=LEAST

// A budget determines the recomputed operations: none if the step is within it. A plan file leads to the same program as
// the budget itself; marks state the operations.

// CHECK:      %a = stablehlo.sine %x {recompute.phase = "primal", recompute.recompute = true}
// CHECK-NOT:  recompute.duplicated

// REMARKS: budget of 70% (14.0 KiB of temporaries): 20.0 KiB -> 12.0 KiB at the peak in program order
// REMARKS: recomputed before stablehlo.multiply: stablehlo.sine, stablehlo.exponential; 8.0 KiB need not be saved

// DONE:      stablehlo.optimization_barrier
// DONE-NEXT: recompute.duplicated

// LEFT-NOT: recompute.duplicated

// LEAST: recompute.recompute = true

func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x {recompute.phase = "primal"} : tensor<1024xf32>
  %b = stablehlo.exponential %a {recompute.phase = "primal"} : tensor<1024xf32>
  %c = stablehlo.tanh %b {recompute.phase = "primal"} : tensor<1024xf32>
  %d = stablehlo.sine %c {recompute.phase = "primal"} : tensor<1024xf32>
  %y = stablehlo.tanh %d {recompute.phase = "primal"} : tensor<1024xf32>
  %g = stablehlo.multiply %d, %c {recompute.phase = "gradient"} : tensor<1024xf32>
  %h = stablehlo.multiply %g, %b {recompute.phase = "gradient"} : tensor<1024xf32>
  %i = stablehlo.multiply %h, %a {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
