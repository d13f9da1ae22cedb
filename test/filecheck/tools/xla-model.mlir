// RUN: recompute-opt %s -t 'memory-timeline{model=xla}' | filecheck %s
// RUN: recompute-opt %s -t explain | filecheck %s --check-prefix=EXPLAIN
// RUN: recompute-opt %s -t 'memory-timeline{model=xla format=json}' | filecheck %s --check-prefix=JSON
// RUN: recompute-opt %s -t 'memory-timeline{model=xla format=html}' | filecheck %s --check-prefix=HTML

// The XLA:CPU model stores the operands and results of matrix products, but neither %a nor the derivative %d, which
// are computed where they are read. %b shares the memory of the result. A tensor of this step has 4 KiB, and four of
// them are live at the peak in program order.
func.func @step(%x: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %a = stablehlo.negate %x : tensor<32x32xf32> loc("jit(f)/jvp(block0)/neg")
  %b = stablehlo.sine %a : tensor<32x32xf32> loc("jit(f)/jvp(block0)/sin")
  %d = stablehlo.cosine %a : tensor<32x32xf32> loc("jit(f)/jvp(block0)/cos")
  %c = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("jit(f)/jvp(block0)/dot")
  %e = stablehlo.dot_general %c, %c, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("jit(f)/jvp(block1)/dot")
  %g = stablehlo.dot_general %e, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("jit(f)/transpose(jvp(block0))/dot")
  %h = stablehlo.multiply %g, %d : tensor<32x32xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %h : tensor<32x32xf32>
}
// CHECK:      peak of temporaries  8.0 KiB
// CHECK-NEXT:   at stablehlo.dot_general, operation 3 of 6

// EXPLAIN:      temporaries  16.0 KiB at their peak in program order
// EXPLAIN:      XLA:CPU      8.0 KiB of temporaries, by a model of its fusion and its order

// JSON-NOT: cosine
// JSON:     "peak_bytes": 8192,
// JSON-NOT: cosine

// HTML: <!DOCTYPE html>
// HTML: "operations": ["stablehlo.sine", "stablehlo.dot_general"
