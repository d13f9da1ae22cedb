// RUN: recompute-opt %s -p 'recompute-mark{skip=1}' 2> %t.remarks | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t.remarks

// Segments are numbered from 0 in program order; a skipped segment stays unchanged, with a remark.
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sine")
  %b = stablehlo.tanh %a : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh")
  %c = stablehlo.sine %b : tensor<64xf32> loc("jit(f)/jvp(block1)/sine"("net.py":9:1))
  %d = stablehlo.tanh %c : tensor<64xf32> loc("jit(f)/jvp(block1)/tanh")
  %e = stablehlo.sine %d : tensor<64xf32> loc("jit(f)/jvp(block2)/sine")
  %y = stablehlo.tanh %e : tensor<64xf32> loc("jit(f)/jvp(block2)/tanh")
  %g = stablehlo.multiply %ct, %e : tensor<64xf32> loc("jit(f)/transpose(jvp(block2))/mul")
  %h = stablehlo.multiply %g, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %i = stablehlo.multiply %h, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.tanh %a {recompute.segment = "block0", recompute.checkpoint}
// CHECK-NEXT:    %c = stablehlo.sine %b :
// CHECK-NEXT:    %d = stablehlo.tanh %c :
// REMARK: net.py:9:1: remark: segment 'block1' is not recomputed: listed among the segments to skip
