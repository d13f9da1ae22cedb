// RUN: recompute-opt %s -p 'recompute{segments=block0}' 2>&1 | filecheck %s
// RUN: recompute-opt %s -p recompute 2>&1 | filecheck %s --check-prefix=AUTO

// If most of the saved bytes are outside the selected segment, the selection is obeyed, with a remark.

// CHECK: remark: 16.0 KiB of the 24.0 KiB saved for the backward pass lie outside every segment: name more of the model (jax.named_scope), or do not select segments
// CHECK: recompute.duplicated
// AUTO-NOT: lie outside every segment

func.func @f(%x: tensor<1024xf32>, %ct: tensor<1024xf32>) -> tensor<1024xf32> {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %h = stablehlo.sine %e : tensor<1024xf32> loc("jit(f)/jvp(block2)/sin")
  %i = stablehlo.exponential %h : tensor<1024xf32> loc("jit(f)/jvp(block2)/exp")
  %g5 = stablehlo.multiply %ct, %i : tensor<1024xf32> loc("jit(f)/transpose(jvp(block2))/mul")
  %g4 = stablehlo.multiply %g5, %h : tensor<1024xf32> loc("jit(f)/transpose(jvp(block2))/mul")
  %g3 = stablehlo.multiply %g4, %e : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %g2 = stablehlo.multiply %g3, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %g1 = stablehlo.multiply %g2, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %g0 = stablehlo.multiply %g1, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %g0 : tensor<1024xf32>
}
