// RUN: recompute-opt %s -p recompute 2>&1 >/dev/null | filecheck %s --check-prefix=QUIET
// RUN: recompute-opt %s -p recompute --remarks=text 2>&1 >/dev/null | filecheck %s --check-prefix=TEXT
// RUN: recompute-opt %s -p recompute --no-proof --remarks=text 2>&1 >/dev/null | filecheck %s --check-prefix=UNPROVED
// RUN: recompute-opt %s -p recompute-inline,recompute-mark,recompute-clone,recompute-cse --remarks=text 2>&1 >/dev/null | filecheck %s --check-prefix=PARTS
// RUN: recompute-opt %s -p recompute --remarks=json 2>&1 >/dev/null | filecheck %s --check-prefix=JSON
// RUN: recompute-opt %s -p recompute --remarks=yaml 2>&1 >/dev/null | filecheck %s --check-prefix=YAML
// RUN: recompute-opt %s -p recompute --remarks-filter=missed 2>&1 >/dev/null | filecheck %s --check-prefix=MISSED
// RUN: recompute-opt %s -p recompute --remarks-filter=passed --remarks-file %t.txt -o %t.mlir
// RUN: filecheck %s --check-prefix=TEXT --input-file %t.txt

// Passed remarks are printed on request: recomputed segments at the model's source, and the gain of the function at its
// position in the input.

// QUIET-NOT: {{are copied|are copies}}
// MISSED-NOT: is recomputed
// TEXT:      model.py:3:5: remark: segment 'block0' is recomputed: 2 operations are copied, 8.0 KiB need not be saved, 2048 FLOPs more
// TEXT-NEXT: {{.*}}driver-passed.mlir:{{[0-9]+}}:1: remark: @step: peak {{[0-9.]+}} KiB -> {{[0-9.]+}} KiB of temporaries in program order (0.{{[0-9]+}}); 2 operations of the result are copies, {{[0-9.]+}}% more FLOPs; proved equal
// UNPROVED: remark: @step: peak {{.*}}; not proved: --no-proof
// PARTS:      model.py:3:5: remark: segment 'block0' is recomputed: 2 operations are copied
// PARTS:      remark: @step: peak {{.*}}; proved equal
// JSON:      "file": "model.py", "line": 3, "column": 5, "message": "segment 'block0' is recomputed: {{.*}}", "category": "passed", "pass_name": "recompute", "function": "step", "amounts": {"operations": 2, "flops": 2048, "freed_bytes": 8192, "kept_bytes": 0}}
// JSON-NEXT: {{.*}}"message": "@step: peak {{.*}}", "category": "passed", "function": "step", "amounts": {"peak_bytes_before": {{[0-9]+}}, "peak_bytes_after": {{[0-9]+}}, "operations": 2, "flops": 2048}}
// YAML:      --- !Passed
// YAML-NEXT: Pass:            recompute
// YAML-NEXT: Name:            recompute
// YAML-NEXT: DebugLoc:        { File: 'model.py', Line: 3, Column: 5 }
// YAML-NEXT: Function:        'step'
// YAML-NEXT: Args:
// YAML-NEXT:   - String:          'segment ''block0'' is recomputed: 2 operations are copied
// YAML-NEXT:   - Operations:      '2'
// YAML-NEXT:   - Flops:           '2048'
// YAML-NEXT:   - FreedBytes:      '8192'
// YAML-NEXT:   - KeptBytes:       '0'

func.func @step(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin"("model.py":3:5))
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp"("model.py":4:5))
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh"("model.py":5:5))
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %f = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %f, %e : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %i = stablehlo.multiply %h, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %j = stablehlo.multiply %i, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %j : tensor<1024xf32>
}
