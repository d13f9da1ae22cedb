// RUN: recompute-opt %s -p recompute-mark,recompute-clone 2>%t.remarks | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t.remarks
// RUN: recompute-opt %s -t explain | filecheck %s --check-prefix=EXPLAIN

// A module without a gradient is left unchanged if another module has a gradient.

module @train {
  func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(block0)/sin")
    %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(block0)/tanh")
    %c = stablehlo.exponential %b : tensor<4xf32> loc("jit(f)/jvp(block0)/exp")
    %g = stablehlo.multiply %ct, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
    %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(block0))/mul")
    func.return %c, %h : tensor<4xf32>, tensor<4xf32>
  }
}
module @infer {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/sin")
    func.return %a : tensor<4xf32>
  }
}

// CHECK:     builtin.module @train
// CHECK:     recompute.recompute
// CHECK:     builtin.module @infer
// CHECK-NOT: recompute.
// REMARK:    this module is left unchanged: no gradient found
// EXPLAIN:   train::step
