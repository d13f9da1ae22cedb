// RUN: recompute-opt %s -p recompute-clone --split-input-file 2>/dev/null | filecheck %s

// Values that the gradient reads are copied before their first reader, behind a token on the incoming gradient.
// The tail (%c) is not copied: no gradient operation reads it. Two readers share one copy.
func.func @one_region(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %b = stablehlo.tanh %a {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp(b)/tanh")
  %c = stablehlo.cosine %b {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp(b)/cos")
  %d = stablehlo.negate %c : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %b : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  %g2 = stablehlo.multiply %g1, %b : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  %g3 = stablehlo.multiply %g2, %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %d, %g3 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @one_region
// CHECK:         %a = stablehlo.sine %x {recompute.recompute = true, recompute.id = 0 : i64}
// CHECK-NEXT:    %b = stablehlo.tanh %a {recompute.recompute = true, recompute.id = 1 : i64}
// CHECK-NEXT:    %c = stablehlo.cosine %b {recompute.recompute = true}
// CHECK:         %g0 = stablehlo.multiply %ct, %d
// CHECK-NEXT:    [[T:%\w+]] = recompute.token %g0 : tensor<4xf32>
// CHECK-NEXT:    [[X:%\w+]] = recompute.depend %x after [[T]] : tensor<4xf32>
// CHECK-NEXT:    [[A:%\w+]] = stablehlo.sine [[X]] {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated, recompute.need_cse}
// CHECK-NEXT:    [[B:%\w+]] = stablehlo.tanh [[A]] {recompute.id = 1 : i64, recompute.copy = 1 : i64, recompute.duplicated, recompute.need_cse}
// CHECK-NEXT:    %g1 = stablehlo.multiply %g0, [[B]] {recompute.target_grad}
// CHECK-NEXT:    %g2 = stablehlo.multiply %g1, [[B]] {recompute.target_grad}
// Later gradient operations read the delayed input; otherwise both the delayed input and %x would stay live.
// CHECK-NEXT:    %g3 = stablehlo.multiply %g2, [[X]] :

// -----

// An operation with unknown effects never runs twice, even if it is marked.
func.func @hidden_state(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = "test.unknown"(%x) {recompute.recompute = true} : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/jvp(b)/unknown")
  %d = stablehlo.negate %a : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %d, %g1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @hidden_state
// CHECK-NEXT:    [[U:%\w+]] = "test.unknown"(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NOT:     recompute.token

// -----

// The copy of %b reads the inside of segment "p", which is also recomputed: it is copied there, and later readers of %a
// read that copy.
func.func @inside_of_another(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %b = stablehlo.tanh %a {recompute.recompute = true, recompute.segment = "q"} : tensor<4xf32> loc("jit(f)/jvp(q)/tanh")
  %d = stablehlo.negate %b : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %b : tensor<4xf32> loc("jit(f)/transpose(jvp(q))/mul")
  %g2 = stablehlo.multiply %g1, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  func.return %d, %g2 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @inside_of_another
// CHECK:         %g0 = stablehlo.multiply
// CHECK-NEXT:    [[T0:%\w+]] = recompute.token %g0
// CHECK-NEXT:    [[X:%\w+]] = recompute.depend %x after [[T0]]
// CHECK-NEXT:    [[A:%\w+]] = stablehlo.sine [[X]]
// CHECK-NEXT:    [[B:%\w+]] = stablehlo.tanh [[A]]
// CHECK-NEXT:    %g1 = stablehlo.multiply %g0, [[B]]
// CHECK-NEXT:    %g2 = stablehlo.multiply %g1, [[A]]

// -----

// Views between marked operations are recomputed with them, since a kept view would pin %a. A mark that keeps a view is
// obeyed.
func.func @views(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp()/sin")
  %v = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<2x2xf32> loc("jit(f)/jvp()/reshape")
  %w = stablehlo.reshape %v : (tensor<2x2xf32>) -> tensor<4xf32> loc("jit(f)/jvp()/reshape")
  %c = stablehlo.tanh %w {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp()/tanh")
  %y = stablehlo.negate %c : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %g0 = stablehlo.multiply %ct, %y : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %c : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %g1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @views
// CHECK:         %g0 = stablehlo.multiply
// CHECK-NEXT:    recompute.token %g0
// CHECK-NEXT:    [[X:%\w+]] = recompute.depend %x
// CHECK-NEXT:    [[A:%\w+]] = stablehlo.sine [[X]]
// CHECK-NEXT:    [[V:%\w+]] = stablehlo.reshape [[A]]
// CHECK-NEXT:    [[W:%\w+]] = stablehlo.reshape [[V]]
// CHECK-NEXT:    [[C:%\w+]] = stablehlo.tanh [[W]]
// CHECK-NEXT:    %g1 = stablehlo.multiply %g0, [[C]]

// -----

// %d is a gradient operation, but all its operands are available early in the forward pass: a token on it would delay
// nothing. The copies wait for the cotangent %g0.
func.func @early_gate(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp()/sin")
  %y = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp()/tanh")
  %z = stablehlo.negate %y : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %d = stablehlo.cosine %x : tensor<4xf32> loc("jit(f)/transpose(jvp())/cos")
  %g0 = stablehlo.multiply %z, %z : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %e = stablehlo.multiply %d, %a : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %e : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %z, %g1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @early_gate
// CHECK:         %g0 = stablehlo.multiply
// CHECK-NEXT:    recompute.token %g0 : tensor<4xf32>

// -----

// %g leads to the first reader and comes after %a, which it reads. But it is available before %c runs: a copy of %c
// that waits for %g could run in the forward pass. The copies wait for %u, which comes after both.
func.func @known_between(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %e = stablehlo.tanh %a {recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/tanh")
  %c = stablehlo.multiply %x, %e {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/mul")
  %y = stablehlo.negate %c : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %u = stablehlo.cosine %y : tensor<4xf32> loc("jit(f)/transpose(jvp())/cos")
  %g = stablehlo.multiply %e, %e : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  %i = stablehlo.multiply %h, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  func.return %y, %u, %i : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @known_between
// CHECK:         recompute.token %u :
// CHECK:         %h = stablehlo.multiply

// -----

// The same with a cotangent that is an argument, available late: %g, which leads to the first reader, is the gate.
func.func @known_with_cotangent(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %e = stablehlo.tanh %a {recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/tan")
  %c = stablehlo.multiply %x, %e {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/mul")
  %y = stablehlo.negate %c : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %u = stablehlo.cosine %y : tensor<4xf32> loc("jit(f)/transpose(jvp())/cos")
  %g = stablehlo.multiply %ct, %e : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %a : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %h, %c : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %u, %i : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @known_with_cotangent
// CHECK:         recompute.token %g :
// CHECK:         %h = stablehlo.multiply

// -----

// A value that is read before any gradient value exists is kept: %d. The copy of %c, of the same segment, waits for %h.
func.func @read_at_once(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %s = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp()/sin")
  %c = stablehlo.cosine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/cos")
  %d = stablehlo.sine %s {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %y = stablehlo.add %c, %d {recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/add")
  %g = stablehlo.negate %one : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %h = stablehlo.multiply %g, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %h, %c : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %i : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @read_at_once
// CHECK:         %h = stablehlo.multiply %g, %d :
// CHECK-NEXT:    recompute.token %h :
// CHECK:         [[C:%\w+]] = stablehlo.cosine
// CHECK-NEXT:    %i = stablehlo.multiply %h, [[C]] {

// -----

// %g is added to the value computed from the copy: the cotangent of a residual stream. It also passes the token, so
// that it is stored there; with only %u as the gate the copy could run early.
func.func @joins(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.tanh %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/tanh")
  %y = stablehlo.add %x, %a : tensor<4xf32> loc("jit(f)/jvp()/add")
  %g = stablehlo.cosine %y : tensor<4xf32> loc("jit(f)/transpose(jvp())/cos")
  %u = stablehlo.multiply %g, %w : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  %h = stablehlo.multiply %u, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  %n = stablehlo.add %g, %h : tensor<4xf32> loc("jit(f)/transpose(jvp())/add_any")
  func.return %y, %n : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @joins
// CHECK:         recompute.token %u, %g :
// CHECK-NEXT:    recompute.depend %x
