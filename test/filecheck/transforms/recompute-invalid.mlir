// RUN: recompute-opt %s -p 'recompute{target=tpu}' --split-input-file --verify-diagnostics

// expected-error@-2 {{unknown target 'tpu'; expected one of stablehlo, none}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
