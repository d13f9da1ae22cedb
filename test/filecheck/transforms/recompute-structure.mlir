// RUN: recompute-opt %s -p recompute --split-input-file 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p recompute --split-input-file --verify-diagnostics
// RUN: recompute-opt %s -p 'recompute{segment-count=3}' --split-input-file 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not recompute-opt %s -p 'recompute{segment-count=1}' --split-input-file 2>&1 | filecheck %s --check-prefix=ONE

// A step without names is cut where few bytes are live. The operations after the last cut are not recomputed: the gradient
// reads them at once.

// CHECK-LABEL: func.func @no_names
// CHECK:         optimization_barrier
// CHECK-NEXT:    stablehlo.{{.*}}recompute.segment = "segment0"{{.*}}recompute.duplicated
// COUNT:         remark: 3 segments by structure
// ONE:           error: cannot divide a forward pass without names into 1 segment

// expected-remark@+2 {{2 segments by structure, chosen from 7 attempts}}
// expected-remark@+6 {{segment 'segment1' is not recomputed: the backward pass begins with these values}}
func.func @no_names(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.exponential %x : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %1 = stablehlo.sine %0 : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %2 = stablehlo.exponential %1 : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %3 = stablehlo.sine %2 : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %4 = stablehlo.exponential %3 : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %5 = stablehlo.sine %4 : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %6 = stablehlo.exponential %5 : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %7 = stablehlo.sine %6 : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %8 = stablehlo.exponential %7 : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %g7 = stablehlo.multiply %ct, %8 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g6 = stablehlo.multiply %g7, %6 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g5 = stablehlo.multiply %g6, %5 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g4 = stablehlo.multiply %g5, %4 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g3 = stablehlo.multiply %g4, %3 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %g3, %2 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g2, %1 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g0 = stablehlo.multiply %g1, %0 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %g0 : tensor<64xf32>
}
