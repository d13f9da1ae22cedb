// RUN: recompute-opt %s -p recompute-mark --remarks=yaml 2>&1 >/dev/null | filecheck %s --check-prefix=YAML
// RUN: recompute-opt %s -p recompute-mark --remarks=json --remarks-file %t.json -o %t.mlir
// RUN: filecheck %s --check-prefix=JSON --input-file %t.json
// RUN: recompute-opt %s -p recompute-mark --remarks-filter=passed,analysis 2>&1 | filecheck %s --check-prefix=FILTERED
// RUN: not recompute-opt %s -p 'recompute-mark{segments=no*}' --remarks=yaml 2>&1 | filecheck %s --check-prefix=FAILURE
// RUN: not recompute-opt %s -p 'recompute-mark{segments=no*}' --remarks=json 2>&1 | filecheck %s --check-prefix=ERROR
// RUN: recompute-opt %s -p recompute-schedule --remarks=yaml 2>&1 >/dev/null | filecheck %s --check-prefix=SCHEDULE

// RUN: recompute-opt %S/../transforms/recompute-calls.mlir -split-input-file -p 'recompute{segments=block0}' --remarks=yaml 2>&1 >/dev/null | filecheck %s --check-prefix=ANALYSIS

// Remarks have the kinds of LLVM: passed, missed and analysis. An error is a failure.

func.func @step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(block0)/tanh")
  %c = stablehlo.exponential %b : tensor<4xf32> loc("jit(f)/jvp(block1)/exp"("model.py":7:9))
  %y = stablehlo.negate %c : tensor<4xf32> loc("jit(f)/jvp(block1)/neg")
  %g = stablehlo.multiply %c, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}

// YAML:      --- !Missed
// YAML-NEXT: Pass:            recompute-mark
// YAML-NEXT: Name:            recompute-mark
// YAML-NEXT: DebugLoc:        { File: 'model.py', Line: 7, Column: 9 }
// YAML-NEXT: Function:        'step'
// YAML-NEXT: Args:
// YAML-NEXT:   - String:          'segment ''block1'' is not recomputed:
// YAML-NEXT: ...

// JSON: {"kind": "remark", "file": "model.py", "line": 7, "column": 9, "message": "segment 'block1' is not recomputed{{.*}}", "category": "missed", "pass_name": "recompute-mark", "function": "step"}
// FILTERED-NOT: remark:

// FAILURE:      --- !Failure
// FAILURE-NEXT: Pass:            recompute-mark
// FAILURE:        - String:          'no segment matches ''no*''
// ERROR: {"kind": "error", {{.*}}"category": "failure", "pass_name": "recompute-mark"
// SCHEDULE: --- !{{Passed|Missed}}
// SCHEDULE-NEXT: Pass:            recompute-schedule
// ANALYSIS:      --- !Analysis
// ANALYSIS-NEXT: Pass:            recompute
// ANALYSIS:        - String:          'peak 1.3 KiB (1280 bytes) on an executor that starts operations as soon as their operands exist
