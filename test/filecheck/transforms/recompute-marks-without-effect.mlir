// RUN: recompute-opt %s -p recompute --split-input-file --verify-diagnostics

// A mark that changes nothing is named in one line, with the reason; a mark that is followed is not mentioned.

// The result is live to the end anyway, so recomputing it frees nothing.
func.func @returned(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  // expected-remark@+1 {{segment 'block1' is not recomputed: the backward pass begins with these values}}
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  // expected-remark@+1 {{stablehlo.tanh is not recomputed: the function returns it, so it lives to the end anyway}}
  %y = stablehlo.tanh %e {recompute.recompute = "must_recompute"} : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}

// -----

// The value of %c is read only in the forward pass; the mark on %b is followed.
func.func @unread(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a {recompute.recompute = "must_recompute"} : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  // expected-remark@+1 {{the mark to recompute stablehlo.tanh has no effect: neither the backward pass nor a recomputed operation reads its value; remove the mark, or mark a value that the backward pass reads}}
  %c = stablehlo.tanh %b {recompute.recompute = "must_recompute"} : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  // expected-remark@+1 {{segment 'block1' is not recomputed: the backward pass begins with these values}}
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}

// -----

// Only values of the forward pass are recomputed or saved.
func.func @backward(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  // expected-remark@+1 {{segment 'block1' is not recomputed: the backward pass begins with these values}}
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  // expected-remark@+1 {{stablehlo.multiply is not recomputed: it runs in phase 'gradient', not in the forward pass}}
  %h = stablehlo.multiply %g, %b {recompute.recompute = true} : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  // expected-remark@+1 {{the mark to save stablehlo.subtract has no effect: it runs in phase 'gradient', and only values of the forward pass are saved or recomputed; remove the mark}}
  %i = stablehlo.subtract %h, %a {recompute.recompute = "must_save"} : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/sub")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}

// -----

// The backward pass reads %d and %e at once, so no copy can wait for a gradient. Each mark is named at its operation.
func.func @read_at_once(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  // expected-remark@+2 {{segment 'block1' is not recomputed: the backward pass begins with these values}}
  // expected-remark@+1 {{the marked operation is not recomputed: the backward pass begins with these values, so recomputing them would free nothing}}
  %d = stablehlo.sine %c {recompute.recompute = "must_recompute"} : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  // expected-remark@+1 {{the marked operation is not recomputed: the backward pass begins with these values, so recomputing them would free nothing}}
  %e = stablehlo.exponential %d {recompute.recompute = true} : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}

// -----

// A preference that saves nothing is not followed; the preference for %a is.
func.func @preferred(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = "prefer_recompute"} : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  // expected-remark@+2 {{segment 'block1' is not recomputed: the backward pass begins with these values}}
  // expected-remark@+1 {{the mark 'prefer_recompute' on stablehlo.sine is not followed: the backward pass begins with these values, so recomputing them would free nothing}}
  %d = stablehlo.sine %c {recompute.recompute = "prefer_recompute"} : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
