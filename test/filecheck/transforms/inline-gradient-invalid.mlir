// RUN: recompute-opt %s --pass-pipeline='builtin.module(recompute-inline,recompute-inline-gradient)' --disable-verify --split-input-file --verify-diagnostics
// RUN: recompute-opt %s -p recompute-inline,recompute-outline-gradient --disable-verify --split-input-file --verify-diagnostics

// Attributes that flattening would lose are an error.
func.func @foreign_attribute(%x: tensor<4xf32>) {
  // expected-error@+1 {{flattening recompute.gradient would lose its attribute 'note'; remove it first}}
  recompute.gradient attributes {note = "mine"} {
    recompute.yield
  }
  func.return
}

// -----

// A gradient must not call a function that contains a gradient.
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@unknown {{recompute.gradient must not be nested: only first-order gradients are supported}}
  %a = recompute.gradient {
    %a = stablehlo.sine %x : tensor<4xf32>
    recompute.yield %a : tensor<4xf32>
  } : tensor<4xf32>
  func.return %a : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = recompute.gradient {
    %a = func.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
    recompute.yield %a : tensor<4xf32>
  } : tensor<4xf32>
  func.return %a : tensor<4xf32>
}
