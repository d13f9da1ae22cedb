// RUN: recompute-opt %s -p 'recompute-mark{outputs=true}' 2> /dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-mark' 2> /dev/null | filecheck %s --check-prefix=KEPT

// With outputs=true the outputs of segments are also recomputed, as with MindSpore's output_recompute.
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sine")
  %b = stablehlo.tanh %a : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh")
  %c = stablehlo.sine %b : tensor<64xf32> loc("jit(f)/jvp(block1)/sine")
  %d = stablehlo.tanh %c : tensor<64xf32> loc("jit(f)/jvp(block1)/tanh")
  %y = stablehlo.exponential %d : tensor<64xf32> loc("jit(f)/jvp(head)/exp")
  %g = stablehlo.multiply %ct, %y : tensor<64xf32> loc("jit(f)/transpose(jvp(head))/mul")
  %h = stablehlo.multiply %g, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %i = stablehlo.multiply %h, %b : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %j = stablehlo.multiply %i, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %j : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.tanh %a {recompute.segment = "block0", recompute.recompute = true}
// KEPT:          %b = stablehlo.tanh %a {recompute.segment = "block0", recompute.checkpoint}
