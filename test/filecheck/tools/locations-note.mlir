// RUN: recompute-opt %s 2>&1 | filecheck %s
// RUN: recompute-opt %s --no-print-debuginfo 2>&1 | filecheck %s --check-prefix=WITHOUT
// RUN: recompute-opt %s --no-print-debuginfo --remarks=json 2>&1 | filecheck %s --check-prefix=JSON
// RUN: recompute-opt %s --no-print-debuginfo 2>/dev/null | recompute-opt 2>&1 | filecheck %s --check-prefix=NONE

// Locations are printed if the input has some. Without them, later tools have no phases and scopes, as a note states.

// CHECK-NOT: note:
// CHECK:     stablehlo.tanh %x : tensor<8xf32> loc(#[[LOC:loc\d*]])
// CHECK:     #[[LOC]] = loc("jit(f)/jvp(block0)/tanh")

// WITHOUT:     locations-note.mlir:1:1: note: locations are not printed, so later tools lose phases and scopes: use --print-debuginfo
// WITHOUT-NOT: loc(
// JSON:        {"kind": "note", "file": "{{.*}}locations-note.mlir", "line": 1, "column": 1
// NONE-NOT:    loc(
// NONE:        func.func @f
// NONE-NOT:    {{note|loc}}

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(f)/jvp(block0)/tanh")
  func.return %0 : tensor<8xf32>
}
