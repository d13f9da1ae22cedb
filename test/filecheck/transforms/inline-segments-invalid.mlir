// RUN: recompute-opt %s -p recompute-inline-segments --split-input-file --verify-diagnostics

func.func @foreign_attribute(%x: tensor<4xf32>) {
  // expected-error@+1 {{flattening recompute.segment would lose its attribute 'note'; remove it first}}
  recompute.segment "block" attributes {note = "mine"} {
    recompute.yield
  }
  func.return
}

// -----

func.func @ill_typed(%x: tensor<4xf32>) {
  // expected-error@+1 {{attribute 'recompute.recompute' must be true, false, a policy}}
  recompute.segment "block" attributes {recompute.recompute = "yes"} {
    recompute.yield
  }
  func.return
}
