// RUN: recompute-opt %s -p recompute-mark 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t
// RUN: recompute-opt %s -p 'recompute-mark{segments=*1}' 2>/dev/null | filecheck %s --check-prefix=PATTERN

// Each scope is a segment. Its inside is marked and its output is kept. The last block stays unmarked: the gradient reads it
// at once.
func.func @two_blocks(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.cosine %a : tensor<4xf32> loc("jit(f)/jvp(block0)/cos")
  %c = stablehlo.exponential %b : tensor<4xf32> loc("jit(f)/jvp(block1)/exp")
  %d = stablehlo.tanh %c : tensor<4xf32> loc("jit(f)/jvp(block1)/tanh")
  %g1 = stablehlo.multiply %d, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %g2 = stablehlo.multiply %g1, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %d, %g2 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @two_blocks
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.cosine %a {recompute.segment = "block0", recompute.checkpoint}
// CHECK-NEXT:    %c = stablehlo.exponential %b : tensor<4xf32>
// CHECK-NEXT:    %d = stablehlo.tanh %c : tensor<4xf32>

// REMARK: mark.mlir:{{\d+}}:{{\d+}}: remark: segment 'block1' is not recomputed: the backward pass begins with these values

// PATTERN-NOT: recompute.recompute
