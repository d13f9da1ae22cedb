// RUN: not recompute-opt %s -p 'recompute-inline,recompute-mark{segments=no*}' --crash-reproducer %t.mlir 2>&1 | filecheck %s --check-prefix=NOTE
// RUN: filecheck %s --input-file %t.mlir
// RUN: not recompute-opt --run-reproducer %t.mlir 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: not recompute-opt %s -p 'recompute-inline,recompute-mark{segments=no*}' --local-reproducer --mlir-pass-pipeline-crash-reproducer=%t.local.mlir 2>&1 | filecheck %s --check-prefix=NOTE
// RUN: filecheck %s --check-prefix=LOCAL --input-file %t.local.mlir
// RUN: recompute-opt %s -p 'recompute-inline' --mlir-generate-reproducer=%t.always.mlir -o %t.out.mlir
// RUN: recompute-opt %t.always.mlir --run-reproducer -o %t.again.mlir
// RUN: recompute-check %t.out.mlir %t.again.mlir
// RUN: recompute-opt %s -p 'recompute-inline' --crash-reproducer %t.none.mlir 2>&1 | filecheck %s --check-prefix=NONE

// A reproducer contains the module before the passes, and the pipeline in the section that `mlir-opt` reads.

func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = func.call @sine(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(block0)/tanh")
  %g = stablehlo.multiply %ct, %b : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}
func.func private @sine(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// NOTE: note: a reproducer is in '{{.*}}.mlir': recompute-opt --run-reproducer
// NOTE: error: no segment matches 'no*'; the scopes are: block0

// CHECK:      func.call @sine
// CHECK:      {-#
// CHECK-NEXT:   external_resources: {
// CHECK-NEXT:     mlir_reproducer: {
// CHECK-NEXT:       pipeline: "builtin.module(recompute-inline,recompute-mark{segments=\"no*\"{{.*}}})",
// CHECK-NEXT:       disable_threading: true,
// CHECK-NEXT:       verify_each: true

// AGAIN: error: no segment matches 'no*'; the scopes are: block0

// A local reproducer contains only the failed pass, and the IR before it.
// LOCAL-NOT: func.call
// LOCAL:     pipeline: "builtin.module(recompute-mark{segments=\"no*\"

// NONE-NOT: {{note:|error:}}
