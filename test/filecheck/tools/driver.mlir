// RUN: recompute-opt %s --pass-pipeline='builtin.module(recompute-inline,recompute-mark{segments=block*})' --remarks=json 2>%t.remarks | filecheck %s
// RUN: filecheck %s --check-prefix=REMARKS --input-file %t.remarks
// RUN: recompute-opt %s --pass-pipeline='builtin.module(recompute-mark,recompute-clone)' --remarks=text 2>%t.text | filecheck %s --check-prefix=CLONED
// RUN: filecheck %s --check-prefix=TEXT --input-file %t.text
// RUN: not recompute-opt %s --pass-pipeline='builtin.module(func.func(recompute-mark))' 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: recompute-opt %s -p recompute-inline,recompute-mark --print-ir-after-change 2>&1 >/dev/null | filecheck %s --check-prefix=CHANGED
// RUN: recompute-opt %s -p recompute-inline --print-ir-after-all 2>&1 >/dev/null | filecheck %s --check-prefix=ALL
// RUN: recompute-opt %s -p recompute-mark,recompute-clone --pass-statistics 2>&1 >/dev/null | filecheck %s --check-prefix=STATISTICS
// RUN: recompute-opt %s -p recompute-mark,recompute-clone --pass-statistics=json 2>&1 >/dev/null | filecheck %s --check-prefix=JSON
// RUN: recompute-opt --list-passes | filecheck %s --check-prefix=LIST
// RUN: recompute-opt --help-pass recompute-mark | filecheck %s --check-prefix=HELP
// RUN: recompute-opt --help-pass memory-timeline | filecheck %s --check-prefix=TARGET
// RUN: recompute-opt --help-pass cse | filecheck %s --check-prefix=FOREIGN
// RUN: not recompute-opt %s -p recompute-mark{segments=block0} --verify-diagnostics 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: recompute-opt %s -p recompute-mark --verify-diagnostics
// RUN: not recompute-opt %s --verify-diagnostics 2>&1 | filecheck %s --check-prefix=MISSING

func.func @step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(block0)/tanh")
  // expected-remark@unknown {{segment 'block1' is not recomputed}}
  %c = stablehlo.exponential %b : tensor<4xf32> loc("jit(f)/jvp(block1)/exp"("model.py":7:9))
  %y = stablehlo.negate %c : tensor<4xf32> loc("jit(f)/jvp(block1)/neg")
  %g = stablehlo.multiply %c, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK: stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = true}
// REMARKS: {"kind": "remark", "file": "model.py", "line": 7, "column": 9, "message": "segment 'block1' is not recomputed: the backward pass begins with

// With `--print-ir-after-change`, the first pass prints nothing, since there is nothing to inline.
// CHANGED-NOT: IR Dump After InlinePass
// CHANGED:     // -----// IR Dump After MarkPass (recompute-mark) //----- //
// CHANGED:     recompute.recompute = true
// ALL:         // -----// IR Dump After InlinePass (recompute-inline) //----- //
// ALL-NEXT:    builtin.module

// Statistics state the operation counts after each pass, and then the times. A part is indented below its parent.
// STATISTICS:      recompute-mark: 9 -> 9 operations, 0 copies{{$}}
// STATISTICS-NEXT: recompute-clone: 9 -> 12 operations, 1 copy{{$}}
// STATISTICS-NEXT: seconds  percent  part
// STATISTICS-NEXT: 100.0%  total
// STATISTICS-NEXT: {{[0-9]+\.[0-9]+}}%    parse
// STATISTICS-NEXT: %    verify
// STATISTICS-NEXT: %    recompute-mark
// STATISTICS-NEXT: %      phases
// STATISTICS:      %    recompute-clone
// STATISTICS:      %      plan
// STATISTICS-NEXT: %      clone
// STATISTICS:      %    prove
// STATISTICS-NEXT: %    print
// JSON:            {"name": "recompute-clone", "operations_before": 9, "operations_after": 12, "copies_after": 1}
// JSON-NEXT:       {"part": "total", "seconds": {{[0-9.e-]+}}, "percent": 100.0}
// JSON:            {"part": "total/recompute-clone/plan", "seconds":

// LIST:      Passes of recompute:
// LIST:        recompute-inline{{ +}}- replace calls to private functions with their bodies, also inside loops
// LIST:      recompute-merge-remat
// LIST:      recompute-take-scopes
// LIST:      recompute-inline-segments
// LIST:      recompute-inline-gradient
// LIST:      recompute-loops
// LIST:      recompute-offload
// LIST:      recompute-phase
// LIST:      recompute-mark
// LIST:      recompute-plan
// LIST:      Passes of xDSL and of other packages:
// LIST:        canonicalize
// HELP:      recompute-mark: translate a selection into marks. `recompute-clone` applies them.
// HELP:      Options:
// HELP-NEXT:   segments=<str>, default auto
// HELP-NEXT:   segment-count=<int>, default 0
// FOREIGN:   cse: this pass has no documentation.
// CLONED:    recompute.token
// TEXT:      model.py:7:9: remark: segment 'block1' is not recomputed: the backward pass begins with these values
// NESTED:    recompute-opt: error: 'recompute-mark' runs on builtin.module, not on func.func: write it outside 'func.func(...)'
// MISSING:   driver.mlir:{{\d+}}:1: error: expected remark was not reported: segment 'block1' is not recomputed

// Targets have help as passes do.
// TARGET:      memory-timeline: The live bytes at each operation of a step.
// TARGET:      Options:
// TARGET-NEXT:   format=<str>, default text: `text`, `json`, `html` or `svg`
