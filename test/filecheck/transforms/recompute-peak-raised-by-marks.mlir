// RUN: recompute-opt %s -p 'recompute{segments=none}' 2>&1 >/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segments=none target=none}' --verify-diagnostics

// The marked operations are copied even if the step then needs more memory. A remark states the peaks and a remedy.

// CHECK: the copies that marks demand raise the peak from 20.0 KiB (20480 bytes) to 24.0 KiB (24576 bytes) in program order and from 16.0 KiB (16384 bytes) to 20.0 KiB (20480 bytes) under the XLA:CPU model: remove these marks, or give the step a budget instead, such as budget=80%

// expected-remark@+1 {{the copies that marks demand raise the peak from 20.0 KiB (20480 bytes) to 24.0 KiB (24576 bytes) in program order: remove these marks}}
func.func @step(%x: tensor<1024xf32>, %ct: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = stablehlo.broadcast_in_dim %x, dims = [1] {recompute.recompute = true} : (tensor<1024xf32>) -> tensor<4x1024xf32> loc("jit(f)/jvp(block0)/broadcast")
  %s = stablehlo.sine %w {recompute.recompute = true} : tensor<4x1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] {recompute.recompute = true} : (tensor<4x1024xf32>, tensor<f32>) -> tensor<1024xf32> loc("jit(f)/jvp(block0)/sum")
  %u = stablehlo.negate %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/neg")
  %c = stablehlo.tanh %u : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.exponential %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %ct, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %h : tensor<1024xf32>, tensor<1024xf32>
}
