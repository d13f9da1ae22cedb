// RUN: recompute-opt %s -p recompute-inline-gradient --split-input-file --verify-diagnostics
// RUN: recompute-opt %s -p recompute-outline-gradient --split-input-file --verify-diagnostics

// Nothing is lost without a word.
func.func @foreign_attribute(%x: tensor<4xf32>) {
  // expected-error@+1 {{flattening recompute.gradient would lose its attribute 'note'; take it away first}}
  recompute.gradient attributes {note = "mine"} {
    recompute.yield
  }
  func.return
}
