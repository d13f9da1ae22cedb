// RUN: recompute-opt %s -p recompute-clone --split-input-file --verify-diagnostics

// Marks on operations that must not run twice are removed, with a remark that states the reason.
func.func @not_twice(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = stablehlo.constant dense<4> : tensor<1xi64>
  // expected-remark@+1 {{test.write is not recomputed: the effects of test.write are unknown}}
  %a = "test.write"(%x) {recompute.recompute = true, recompute.phase = "primal"} : (tensor<4xf32>) -> tensor<4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark@+1 {{stablehlo.rng is not recomputed: it draws from a hidden random state: a copy would draw different numbers; draw with stablehlo.rng_bit_generator, whose state is an operand}}
  %b = "stablehlo.rng"(%z, %z, %s) {recompute.recompute = true, recompute.phase = "primal", rng_distribution = #stablehlo<rng_distribution UNIFORM>} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  // expected-remark@+1 {{stablehlo.custom_call is not recomputed: the custom call @f is not known to return the same value each time; if it does, declare it with repeatable=f}}
  %c = "stablehlo.custom_call"(%b) {recompute.recompute = true, recompute.phase = "primal", call_target_name = "f"} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{stablehlo.all_reduce is not recomputed: it is a collective, and recomputation of collectives is disabled}}
  %d = "stablehlo.all_reduce"(%c) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {recompute.recompute = true, recompute.phase = "primal", replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+1 {{stablehlo.negate is not recomputed: the function returns it, so it lives to the end anyway}}
  %e = stablehlo.negate %d {recompute.recompute = true, recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %a {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-remark@+1 {{stablehlo.add is not recomputed: it runs in phase 'gradient', not in the forward pass}}
  %k = stablehlo.add %g, %b {recompute.recompute = true} : tensor<4xf32>
  // There is no remark on operations that are marked to be kept.
  %l = stablehlo.add %k, %b {recompute.recompute = false, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %l, %d {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %e, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A loop that contains an effect is not copied.
func.func @effect_inside(%x: tensor<4xf32>, %p: tensor<i1>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark@+1 {{stablehlo.if is not recomputed: test.write inside: the effects of test.write are unknown}}
  %a = "stablehlo.if"(%p) ({
    %b = "test.write"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) {recompute.recompute = true, recompute.phase = "primal"} : (tensor<i1>) -> tensor<4xf32>
  %g = stablehlo.multiply %ct, %a {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %g : tensor<4xf32>
}

// -----

// A remark reports a mark without effect, on operations without results or gradient readers, once for each segment.
func.func @no_effect(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-remark@+1 {{test.write is not recomputed: it has no results}}
  "test.write"(%x) {recompute.recompute = true, recompute.phase = "primal"} : (tensor<4xf32>) -> ()
  // expected-remark@+1 {{the marked operation is not recomputed: no gradient operation reads any of the values}}
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.phase = "primal"} : tensor<4xf32>
  // expected-remark@+1 {{segment 'p' is not recomputed: no gradient operation reads any of the values}}
  %b = stablehlo.tanh %a {recompute.recompute = true, recompute.segment = "p", recompute.phase = "primal"} : tensor<4xf32>
  %c = stablehlo.cosine %b {recompute.recompute = true, recompute.segment = "p", recompute.phase = "primal"} : tensor<4xf32>
  %d = stablehlo.negate %c {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %ct {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %d, %g : tensor<4xf32>, tensor<4xf32>
}

// -----

// A mark is removed if there is no gate: %g is available before %c runs, so it cannot delay a copy of %c.
func.func @known_before(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.phase = "primal"} : tensor<4xf32>
  %e = stablehlo.tanh %a {recompute.segment = "p", recompute.phase = "primal"} : tensor<4xf32>
  %c = stablehlo.multiply %x, %e {recompute.recompute = true, recompute.segment = "p", recompute.phase = "primal"} : tensor<4xf32>
  %y = stablehlo.negate %c {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %e, %e {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-remark@+1 {{segment 'p' is not recomputed: the backward pass begins with these values}}
  %h = stablehlo.multiply %g, %a {recompute.phase = "gradient"} : tensor<4xf32>
  %i = stablehlo.multiply %h, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %y, %i : tensor<4xf32>, tensor<4xf32>
}
