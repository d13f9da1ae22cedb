// RUN: recompute-opt %s --split-input-file --verify-diagnostics

func.func @types(%x: tensor<4xf32>) {
  // expected-error@+1 {{recompute.yield returns (tensor<4xf32>), but the results of recompute.segment are (tensor<5xf32>)}}
  %a = "recompute.segment"() ({
    "recompute.yield"(%x) : (tensor<4xf32>) -> ()
  }) : () -> tensor<5xf32>
  func.return
}

// -----

func.func @nothing_yielded(%x: tensor<4xf32>) {
  // expected-error@+1 {{recompute.yield returns (), but the results of recompute.gradient are (tensor<4xf32>)}}
  %a = recompute.gradient {
    recompute.yield
  } : tensor<4xf32>
  func.return
}

// -----

func.func @no_yield(%x: tensor<4xf32>) {
  // expected-error@+1 {{recompute.segment must end with recompute.yield}}
  recompute.segment {
    %a = stablehlo.sine %x : tensor<4xf32>
  }
  func.return
}

// -----

func.func @arguments(%x: tensor<4xf32>) {
  // expected-error@+1 {{recompute.gradient must not have arguments: its operations read values from outside directly}}
  "recompute.gradient"() ({
  ^bb0(%y: tensor<4xf32>):
    "recompute.yield"() : () -> ()
  }) : () -> ()
  func.return
}

// -----

func.func @gradient_of_gradient(%x: tensor<4xf32>) {
  recompute.gradient {
    // expected-error@+1 {{recompute.gradient must not be nested: only first-order gradients are supported}}
    recompute.gradient {
      recompute.yield
    }
    recompute.yield
  }
  func.return
}

// -----

func.func @backward_segment(%x: tensor<4xf32>) {
  recompute.gradient {
    // expected-error@+1 {{a segment belongs to the forward pass and must not be inside recompute.gradient}}
    recompute.segment {
      recompute.yield
    }
    recompute.yield
  }
  func.return
}

// -----

func.func @gradient_in_segment(%x: tensor<4xf32>) {
  recompute.segment {
    // expected-error@+1 {{recompute.gradient must be in a function, not in recompute.segment}}
    recompute.gradient {
      recompute.yield
    }
    recompute.yield
  }
  func.return
}

// -----

func.func @segment_in_a_branch(%c: tensor<i1>) {
  "stablehlo.if"(%c) ({
    // expected-error@+1 {{a segment must be in a function or in another segment, not in stablehlo.if: put all of stablehlo.if into the segment}}
    recompute.segment {
      recompute.yield
    }
    stablehlo.return
  }, {
    stablehlo.return
  }) : (tensor<i1>) -> ()
  func.return
}

// -----

func.func @name(%x: tensor<4xf32>) {
  // expected-error@+1 {{invalid segment name 'block#1'}}
  recompute.segment "block#1" {
    recompute.yield
  }
  func.return
}

// -----

func.func @yield_in_a_function(%x: tensor<4xf32>) {
  // expected-error@+1 {{recompute.yield: 'recompute.yield' expects parent op}}
  recompute.yield
}

// -----

// Only the results of a gradient region are visible outside it.
func.func @scope(%x: tensor<4xf32>) -> tensor<4xf32> {
  recompute.segment {
    %a = stablehlo.sine %x : tensor<4xf32>
    recompute.yield
  }
  // expected-error@+1 {{%a is used but not defined}}
  func.return %a : tensor<4xf32>
}

// -----

func.func @list(%x: tensor<4xf32>) {
  // expected-error@+1 {{recompute.recompute on a segment applies to all its operations: expected one value, not a list}}
  %a = recompute.segment attributes {recompute.recompute = [false]} {
    recompute.yield %x : tensor<4xf32>
  } : tensor<4xf32>
  func.return
}
