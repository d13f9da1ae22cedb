// RUN: recompute-opt %s -p 'recompute-mark{segment-count=2}' 2> /dev/null | filecheck %s

// Segments are merged into groups in program order: values passed between segments of one group are also recomputed.
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sine")
  %b = stablehlo.tanh %a : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh")
  %c = stablehlo.sine %b : tensor<64xf32> loc("jit(f)/jvp(block1)/sine")
  %d = stablehlo.tanh %c : tensor<64xf32> loc("jit(f)/jvp(block1)/tanh")
  %e = stablehlo.sine %d : tensor<64xf32> loc("jit(f)/jvp(block2)/sine")
  %f = stablehlo.tanh %e : tensor<64xf32> loc("jit(f)/jvp(block2)/tanh")
  %k = stablehlo.sine %f : tensor<64xf32> loc("jit(f)/jvp(block3)/sine")
  %y = stablehlo.tanh %k : tensor<64xf32> loc("jit(f)/jvp(block3)/tanh")
  %q = stablehlo.multiply %ct, %k : tensor<64xf32> loc("jit(f)/transpose(jvp(block3))/mul")
  %g = stablehlo.multiply %q, %e : tensor<64xf32> loc("jit(f)/transpose(jvp(block2))/mul")
  %h = stablehlo.multiply %g, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %i = stablehlo.multiply %h, %b : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %j = stablehlo.multiply %i, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %j : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block0..block1", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.tanh %a {recompute.segment = "block0..block1", recompute.recompute = true}
// CHECK-NEXT:    %c = stablehlo.sine %b {recompute.segment = "block0..block1", recompute.recompute = true}
// CHECK-NEXT:    %d = stablehlo.tanh %c {recompute.segment = "block0..block1", recompute.checkpoint}
// CHECK-NEXT:    %e = stablehlo.sine %d :
