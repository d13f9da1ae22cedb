// RUN: recompute-opt %s -p recompute-lower --split-input-file --verify-diagnostics
// RUN: recompute-opt %s -p 'recompute-lower{target=none}' --split-input-file --verify-diagnostics

// Only a depend can wait for a token: other operations that read a token have no counterpart in the target.
func.func @another_reader(%x: tensor<4xf32>) {
  %t = recompute.token %x : tensor<4xf32>
  // expected-error@+1 {{only recompute.depend can wait for a token}}
  "test.wait"(%t) : (!recompute.token) -> ()
  func.return
}
