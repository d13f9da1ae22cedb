// RUN: recompute-opt %s -p 'recompute{segment-budgets="block0:min"}' 2>%t.remarks >/dev/null
// RUN: filecheck %s --input-file %t.remarks
// RUN: recompute-opt %s -p 'recompute{segment-budgets="block0:min" target=none}' 2>&1 >/dev/null | filecheck %s --check-prefix=ORDER
// RUN: recompute-opt %s -p 'recompute-plan{segment-budgets="block0:min"}' 2>&1 >/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segment-budgets="block0:100%"}' 2>&1 >/dev/null | filecheck %s --check-prefix=ENOUGH

// The copies that a segment budget demands are made even if the step then needs more memory: %b is small, but %s, from
// which it is recomputed, is large. A remark states the peaks and a remedy. There is no remark on the marks of the
// choice, such as the mark on %u, whose value is not read: the user did not write them.

// CHECK-NOT: the mark to
// CHECK: the copies for segment-budgets raise the peak from 20.0 KiB (20480 bytes) to 24.0 KiB (24576 bytes) in program order and from 16.0 KiB (16384 bytes) to 36.0 KiB (36864 bytes) under the XLA:CPU model: the segments save fewer bytes, but recomputing them takes more memory at the peak; raise these budgets, or give the step a budget instead, such as budget=80%
// CHECK-NOT: the mark to

// ORDER: the copies for segment-budgets raise the peak from 20.0 KiB (20480 bytes) to 24.0 KiB (24576 bytes) in program order: the segments save

// ENOUGH-NOT: raise the peak

func.func @step(%x: tensor<1024xf32>, %ct: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %w = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<1024xf32>) -> tensor<4x1024xf32> loc("jit(f)/jvp(block0)/broadcast")
  %s = stablehlo.sine %w : tensor<4x1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x1024xf32>, tensor<f32>) -> tensor<1024xf32> loc("jit(f)/jvp(block0)/sum")
  %u = stablehlo.negate %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/neg")
  %c = stablehlo.tanh %u : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.exponential %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %ct, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %h : tensor<1024xf32>, tensor<1024xf32>
}
