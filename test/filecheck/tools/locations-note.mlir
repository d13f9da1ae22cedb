// RUN: recompute-opt %s 2>&1 | filecheck %s
// RUN: recompute-opt %s --print-debuginfo 2>&1 | filecheck %s --check-prefix=WITH
// RUN: recompute-opt %s --remarks=json 2>&1 | filecheck %s --check-prefix=JSON

// Without printed locations, later tools have no phases and scopes: a note says so.

// CHECK: locations-note.mlir:1:1: note: locations are not printed, so later tools lose phases and scopes: use --print-debuginfo
// JSON:  {"kind": "note", "file": "{{.*}}locations-note.mlir", "line": 1, "column": 1
// WITH-NOT: note:
// WITH:  func.func @f

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(f)/jvp(block0)/tanh")
  func.return %0 : tensor<8xf32>
}
