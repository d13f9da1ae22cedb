// RUN: not recompute-opt %s -p recompute-verify 2>&1 | filecheck %s
// RUN: recompute-opt %s -p recompute-verify --split-input-file --verify-diagnostics

// A copy whose operand is not delayed would run in the forward pass.
func.func @ungated(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.id = 0 : i64} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %g = stablehlo.negate %ct : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  // expected-error@unknown {{reads argument 0 without waiting}}
  %c = stablehlo.sine %x {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/sin"("model.py":7:3))
  %h = stablehlo.multiply %g, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %a, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK: model.py:7:3: error: this copy of stablehlo.sine reads argument 0 without waiting for a gradient

// -----

// A copy in a function without a gradient has no gate. Most probably, the locations that named the phases are lost.
func.func @no_gradient(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@+1 {{this copy is in a function without gradient operations: no location names transpose(jvp(...)) and no operation has recompute.phase = "gradient"; probably a tool has dropped the locations: print the module with locations, or run recompute-phase before recompute-clone, so that attributes state the phases}}
  %c = stablehlo.sine %x {recompute.id = 0, recompute.copy = 1, recompute.duplicated} : tensor<4xf32>
  func.return %c, %c : tensor<4xf32>, tensor<4xf32>
}

// -----

// A copy without the attribute `recompute.copy` would be merged by the next CSE.
func.func @no_word(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{this copy of stablehlo.sine lacks the attribute 'recompute.duplicated'}}
  %c = stablehlo.sine %d {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A copy must have the id of its original.
func.func @no_id(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{this copy of stablehlo.sine lacks the attribute 'recompute.id'}}
  %c = stablehlo.sine %d {recompute.segment = "p", recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A gradient operation must not read the original through the barrier of the copies.
func.func @original_read(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d:2 = recompute.depend %x, %a after %t {recompute.phase = "gradient"} : tensor<4xf32>, tensor<4xf32>
  %c = stablehlo.sine %d#0 {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %e = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{stablehlo.multiply reads the original stablehlo.sine instead of a copy, although it is marked for recomputation}}
  %h = stablehlo.multiply %e, %d#1 {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// Two copies must not have the same segment, id and number.
func.func @twice(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  %c = stablehlo.sine %d {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{an earlier copy of stablehlo.sine has the same segment, id and copy number}}
  %c2 = stablehlo.sine %d {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %e = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %e, %c2 {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A copy that stands in the forward pass frees nothing.
func.func @forward(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  // expected-error@+1 {{this copy of stablehlo.sine is in phase 'residual', not in phase 'gradient'}}
  %c = stablehlo.sine %x {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "residual"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// Operands of a copy must wait for a gradient value. A token for a forward value is not a gate.
func.func @before(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %b {recompute.phase = "gradient"} : tensor<4xf32>
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{this copy of stablehlo.sine reads recompute.depend without waiting for a gradient}}
  %c = stablehlo.sine %d {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A token for a forward value is rejected even without a copy.
func.func @idle(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %b = stablehlo.tanh %x {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{this token waits for no gradient value, so the operations that depend on it may run in the forward pass}}
  %t = recompute.token %b {recompute.phase = "gradient"} : tensor<4xf32>
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %d {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A token must have uses.
func.func @unread(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %b = stablehlo.tanh %x {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{this token has no uses}}
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %g {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A copy must not read a value of a segment directly.
func.func @segment(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.segment = "p", recompute.id = 1, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %y = stablehlo.cosine %b {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %y {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{this copy of stablehlo.tanh reads stablehlo.sine of segment 'p' without waiting for a gradient}}
  %c = stablehlo.tanh %a {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A compiler drops a barrier whose gradient result has no uses.
func.func @legs(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{the gradient results of this barrier have no uses, so a compiler removes them, and with them the order of the copies}}
  %d:2 = "stablehlo.optimization_barrier"(%g, %x) {recompute.phase = "gradient"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c = stablehlo.sine %d#1 {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// %g does not depend on %a. It is available before %a runs, and a copy of %a could then run in the forward pass.
func.func @early(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = stablehlo.cosine %x {recompute.phase = "primal"} : tensor<4xf32>
  %a = stablehlo.sine %y {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.negate %y {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{the gradient values that these copies wait for are available before their originals have run}}
  %d = recompute.depend %y after %t {recompute.phase = "gradient"} : tensor<4xf32>
  %c = stablehlo.sine %d {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A value that depends only on the original itself is not a gate.
func.func @own_gate(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.negate %a {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{the gradient values that these copies wait for are available before their originals have run}}
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  %c = stablehlo.sine %d {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A value that depends on no forward value is not a gate, even if the original has been erased.
func.func @orphan(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %b = stablehlo.tanh %x {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.negate %x {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{the gradient values that these copies wait for are available before their originals have run}}
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  %c = stablehlo.sine %d {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// The regions of a copy may read the values that the copy waits for.
func.func @inside(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %a = "stablehlo.case"(%i) ({
    %s = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }) {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : (tensor<i32>) -> tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  // expected-error@+1 {{the gradient results of this barrier have no uses, so a compiler removes them, and with them the order of the copies}}
  %d:2 = "stablehlo.optimization_barrier"(%g, %x) {recompute.phase = "gradient"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c = "stablehlo.case"(%i) ({
    %s = stablehlo.sine %d#1 : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }) {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : (tensor<i32>) -> tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}
