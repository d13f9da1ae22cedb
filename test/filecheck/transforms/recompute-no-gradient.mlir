// RUN: recompute-opt %s -p recompute --split-input-file --verify-diagnostics

// The error for a step without a gradient gives one of three reasons, each with a remedy.

// expected-error@+1 {{no gradient found: no location names transpose(jvp(...))}}
func.func @silent(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  func.return %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{the locations name 1 operation of a forward pass, but no operations of its gradient; differentiate first}}
func.func @forward_only(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(f)/jvp(block0)/tanh")
  func.return %0 : tensor<8xf32>
}

// -----

// expected-error@+1 {{so JAX has not differentiated this program}}
func.func @inference(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("jit(f)/block0/tanh")
  func.return %0 : tensor<8xf32>
}
