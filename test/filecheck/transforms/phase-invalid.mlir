// RUN: recompute-opt %s -p recompute-phase --split-input-file --verify-diagnostics

// expected-error@+1 {{no gradient found}}
func.func @forward_only(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  func.return %a : tensor<4xf32>
}

// -----

func.func @attribute(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@below {{the attribute recompute.phase = "primal" puts stablehlo.tanh in the forward pass, but it follows}}
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %c = stablehlo.negate %b : tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

// expected-error@+1 {{function 'two_blocks' has 2 blocks; recomputation needs one block}}
func.func @two_blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  "test.branch"() [^bb1] : () -> ()
^bb1:
  func.return %x : tensor<4xf32>
}

// -----

func.func @structured(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{recompute.gradient must be flattened before phases can be assigned to its operations: run recompute-inline-gradient}}
  %a = recompute.gradient {
    %a = stablehlo.sine %x : tensor<4xf32>
    recompute.yield %a : tensor<4xf32>
  } : tensor<4xf32>
  func.return %a : tensor<4xf32>
}
