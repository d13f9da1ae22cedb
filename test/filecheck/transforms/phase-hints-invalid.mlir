// RUN: recompute-opt %s -p 'recompute-phase{primal-results=0}' --split-input-file --verify-diagnostics

// With this hint all operations belong to the forward pass: the error names the hint.
func.func @all_forward(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = stablehlo.sine %x : tensor<8xf32>
  // expected-error@below {{no gradient found: with primal-results=0 the forward pass ends with stablehlo.multiply}}
  %g = stablehlo.multiply %a, %a : tensor<8xf32>
  func.return %g : tensor<8xf32>
}
