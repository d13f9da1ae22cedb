// RUN: recompute-opt %s -p recompute-take-marks --split-input-file --verify-diagnostics

func.func public @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{unknown mark 'recompute.keep'; expected one of recompute.save, recompute.again, recompute.offload, recompute.name}}
  %0 = stablehlo.custom_call @recompute.keep(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// -----

func.func public @no_identity(%x: tensor<4xf32>) -> tensor<4xf16> {
  // expected-error@+1 {{recompute.save must take one value and return one value of the same type}}
  %0 = stablehlo.custom_call @recompute.save(%x) : (tensor<4xf32>) -> tensor<4xf16>
  func.return %0 : tensor<4xf16>
}

// -----

func.func public @nameless(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{recompute.name must have a name in its backend_config}}
  %0 = stablehlo.custom_call @recompute.name(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
