// RUN: recompute-opt %s -p recompute-inline,recompute-mark --print-ir-before=recompute-mark 2>&1 >/dev/null | filecheck %s --check-prefix=BEFORE
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --print-ir-before-all 2>&1 >/dev/null | filecheck %s --check-prefix=BEFORE-ALL
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --mlir-print-ir-after=recompute-inline 2>&1 >/dev/null | filecheck %s --check-prefix=AFTER
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --print-ir-after-all 2>&1 >/dev/null | filecheck %s --check-prefix=AFTER-ALL
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --mlir-print-ir-after-all --mlir-print-ir-after-change 2>&1 >/dev/null | filecheck %s --check-prefix=CHANGE
// RUN: not recompute-opt %s -p 'recompute-inline,recompute-mark{segments=no*}' --print-ir-after-failure 2>&1 | filecheck %s --check-prefix=FAILURE
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --print-ir-after-failure 2>&1 | filecheck %s --check-prefix=SUCCESS
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --dump-dir %t.dumps
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --dump-dir %t.one --print-ir-after=recompute-mark 2>&1 >/dev/null | filecheck %s --check-prefix=SELECTED
// RUN: filecheck %s --check-prefix=FILE --input-file %t.one/02_after_recompute-mark.mlir
// RUN: filecheck %s --check-prefix=FILE --input-file %t.dumps/02_after_recompute-mark.mlir
// RUN: recompute-opt %t.dumps/02_after_recompute-mark.mlir | filecheck %s --check-prefix=READ
// RUN: recompute-opt %s -split-input-file -p recompute-inline --mlir-print-ir-tree-dir %t.split
// RUN: filecheck %s --check-prefix=FIRST --input-file %t.split/00_01_after_recompute-inline.mlir
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --mlir-timing 2>&1 >/dev/null | filecheck %s --check-prefix=TIMING
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --timing=list 2>&1 >/dev/null | filecheck %s --check-prefix=TIME-LIST
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --timing=json 2>&1 >/dev/null | filecheck %s --check-prefix=TIME-JSON
// RUN: recompute-opt %s -p 'recompute-inline,recompute-mark{segments=block*}' --dump-pass-pipeline 2>&1 >/dev/null | filecheck %s --check-prefix=PIPELINE

// The headers and the table of times are MLIR's, whose tools read them.

func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(block0)/tanh")
  %g = stablehlo.multiply %ct, %b : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// BEFORE:      // -----// IR Dump Before MarkPass (recompute-mark) //----- //
// BEFORE-NEXT: builtin.module
// BEFORE-NOT:  {{IR Dump|recompute.recompute}}

// BEFORE-ALL:     IR Dump Before InlinePass (recompute-inline)
// BEFORE-ALL:     IR Dump Before MarkPass (recompute-mark)
// BEFORE-ALL-NOT: IR Dump

// AFTER:     IR Dump After InlinePass (recompute-inline)
// AFTER-NOT: IR Dump

// AFTER-ALL: IR Dump After InlinePass (recompute-inline)
// AFTER-ALL: IR Dump After MarkPass (recompute-mark)

// CHANGE-NOT: IR Dump After InlinePass
// CHANGE:     IR Dump After MarkPass (recompute-mark)

// FAILURE-NOT: InlinePass
// FAILURE:     // -----// IR Dump After MarkPass Failed (recompute-mark) //----- //
// FAILURE:     error: no segment matches 'no*'
// SUCCESS-NOT: IR Dump

// FILE:      // -----// IR Dump After MarkPass (recompute-mark) //----- //
// FILE-NEXT: builtin.module
// FILE:      recompute.recompute = true
// READ:      recompute.recompute = true
// SELECTED:  note: the IR that --print-ir-* selects is in '{{.*}}.one': 02_after_recompute-mark.mlir
// FIRST:     IR Dump After InlinePass

// TIMING:      ===---{{-*}}===
// TIMING-NEXT: ... Execution time report ...
// TIMING-NEXT: ===---{{-*}}===
// TIMING-NEXT:   Total Execution Time: {{[0-9]+\.[0-9]+}} seconds
// TIMING:        ----Wall Time----  ----Name----
// TIMING-NEXT: {{[0-9]+\.[0-9]+ \( *[0-9.]+%\)}}  parse
// TIMING:      {{%\)}}  recompute-mark
// TIMING-NEXT: {{%\)}}    phases
// TIMING:      (100.0%)  Total

// TIME-LIST:      ----Wall Time----  ----Name----
// TIME-LIST-DAG: {{%\)}}  recompute-mark
// TIME-LIST-DAG: {{%\)}}  phases
// TIME-LIST:      (100.0%)  Total

// TIME-JSON: {"part": "total", "seconds": {{[0-9.e-]+}}, "percent": 100.0}
// TIME-JSON: {"part": "total/recompute-mark/phases", "seconds":

// PIPELINE:      Pass Manager with 2 passes:
// PIPELINE-NEXT: builtin.module(recompute-inline,recompute-mark{segments="block*"
