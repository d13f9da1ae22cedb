// RUN: recompute-opt %s -p cse -p 'recompute-inline,recompute-verify' -p canonicalize --dump-pass-pipeline -o /dev/null 2>&1 | filecheck %s

// The pipelines of repeated `-p` options are concatenated in their order.

// CHECK:      Pass Manager with 4 passes:
// CHECK-NEXT: builtin.module(cse,recompute-inline,recompute-verify,canonicalize)

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
