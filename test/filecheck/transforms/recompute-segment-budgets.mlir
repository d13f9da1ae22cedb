// RUN: recompute-opt %s -p 'recompute{segment-budgets="block0:50%"}' 2>%t.remarks >%t.once
// RUN: filecheck %s --input-file %t.once
// RUN: filecheck %s --check-prefix=SAID --input-file %t.remarks
// RUN: recompute-opt %s -p 'recompute-plan{segment-budgets="block0:50%"}' --emit-plan %t.plan 2>/dev/null | filecheck %s --check-prefix=MARKS
// RUN: recompute-opt %s -p 'recompute{plan=%t.plan}' 2>/dev/null >%t.planned
// RUN: diff %t.once %t.planned
// RUN: recompute-opt %s -p 'recompute-mark{segment-budgets="block0:50%"}' 2>/dev/null | filecheck %s --check-prefix=MARKS
// RUN: recompute-opt %s -p 'recompute{segment-budgets="block*:100%,block0:min"}' 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: recompute-opt %s -p 'recompute{segment-budgets="block0:min","block1:8KiB"}' 2>&1 | filecheck %s --check-prefix=LEAST
// RUN: recompute-opt %s -p 'recompute{segment-budgets="block0:50%" budget=70% memory-model=order}' 2>&1 | filecheck %s --check-prefix=BOTH

// The backward pass reads two values of 4096 bytes of block0. With half of these bytes as its budget one is kept, and
// one operation is recomputed for the other. Of several matching patterns the first one applies.

// CHECK:      %a = stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = false, recompute.checkpoint}
// CHECK-NEXT: %b = stablehlo.exponential %a {recompute.segment = "block0", recompute.recompute = true, recompute.id = 0 : i64}
// CHECK:      %d = stablehlo.sine %c :
// CHECK:      %g = stablehlo.multiply %e, %d
// CHECK-NEXT: [[A:%\w+]], [[G:%\d+]] = stablehlo.optimization_barrier %a, %g
// CHECK-NEXT: [[B:%\w+]] = stablehlo.exponential [[A]] {{.*}}recompute.duplicated
// CHECK-NEXT: stablehlo.multiply [[G]], [[B]] {recompute.target_grad}
// CHECK-NEXT: stablehlo.multiply %h, [[A]]

// SAID: segment 'block0' saves 4.0 KiB (4096 bytes) of 8.0 KiB (8192 bytes) for the backward pass, within the budget block0:50%, 4.0 KiB (4096 bytes): 1024 FLOPs more

// MARKS:      %a = stablehlo.sine %x {{.*}}recompute.recompute = false
// MARKS-NEXT: %b = stablehlo.exponential %a {{.*}}recompute.recompute = true
// MARKS-NOT:  recompute.duplicated

// NOTHING:     segment 'block0' and 1 more save 8.0 KiB (8192 bytes) for the backward pass, within the budget block*:100%: no recomputation is needed
// NOTHING-NOT: recompute.duplicated

// LEAST:         segment 'block1' saves 8.0 KiB (8192 bytes) for the backward pass, within the budget block1:8KiB: no recomputation is needed
// LEAST:         segment 'block0' saves 0 bytes of 8.0 KiB (8192 bytes) for the backward pass, within the budget block0:min, 0 bytes: 2048 FLOPs more
// LEAST-COUNT-2: recompute.duplicated

// BOTH: segment 'block0' saves 4.0 KiB (4096 bytes) of 8.0 KiB (8192 bytes)
// BOTH: budget of 70% (14.0 KiB of temporaries): 20.0 KiB -> 12.0 KiB at the peak in program order

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
