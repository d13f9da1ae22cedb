// RUN: recompute-opt %s -p 'recompute{segments=none}' --verify-diagnostics

// The mark on %c is followed, but its operand %b, of the same size, must be kept instead.
// expected-remark@+1 {{the copies that marks demand raise the peak from 4.0 KiB (4096 bytes) to 8.0 KiB (8192 bytes) under the XLA:CPU model: remove these marks}}
func.func @step(%x: tensor<1024xf32>, %ct: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  // expected-remark@+1 {{the mark to recompute stablehlo.tanh frees no memory: 4.0 KiB (4096 bytes) need not be saved, but 4.0 KiB (4096 bytes) are kept instead; remove the mark, or also mark the operations that compute its operands}}
  %c = stablehlo.tanh %b {recompute.recompute = "must_recompute"} : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.exponential %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %ct, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %c : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %h : tensor<1024xf32>, tensor<1024xf32>
}
