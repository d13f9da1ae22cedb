// RUN: recompute-opt %s -p recompute-inline --split-input-file --verify-diagnostics

// expected-error@+1 {{function 'f' calls itself; recursive functions cannot be inlined}}
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
