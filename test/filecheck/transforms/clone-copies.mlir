// RUN: recompute-opt %s -p recompute-clone --split-input-file | filecheck %s
// RUN: recompute-opt %s -p 'recompute-clone{copies=1}' --split-input-file | filecheck %s --check-prefix=ONE

// The output %b of segment p is recomputed, and segment q reads it first. A spine recomputes %b. The inside %a must not
// stay alive until p's own gradient arrives, and is copied a second time. The output %b has only one copy.
func.func @spine(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %b = stablehlo.exponential %a {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/exp")
  %c = stablehlo.tanh %b {recompute.recompute = true, recompute.segment = "q"} : tensor<4xf32> loc("jit(f)/jvp(q)/tanh")
  %d = stablehlo.negate %c {recompute.segment = "q"} : tensor<4xf32> loc("jit(f)/jvp(q)/neg")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(q))/mul")
  %g2 = stablehlo.multiply %g1, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  func.return %d, %g2 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @spine
// CHECK:         %g0 = stablehlo.multiply
// CHECK-NEXT:    [[T0:%\w+]] = recompute.token %g0
// CHECK-NEXT:    [[X0:%\w+]] = recompute.depend %x after [[T0]]
// CHECK-NEXT:    [[A0:%\w+]] = stablehlo.sine [[X0]] {recompute.segment = "p", recompute.id = 0 : i64, recompute.copy = 1
// CHECK-NEXT:    [[B0:%\w+]] = stablehlo.exponential [[A0]] {recompute.segment = "p", recompute.id = 1 : i64, recompute.copy = 1
// CHECK-NEXT:    [[C0:%\w+]] = stablehlo.tanh [[B0]] {recompute.segment = "q", recompute.id = 2 : i64, recompute.copy = 1
// CHECK-NEXT:    %g1 = stablehlo.multiply %g0, [[C0]]
// CHECK-NEXT:    [[T1:%\w+]] = recompute.token %g1
// CHECK-NEXT:    [[X1:%\w+]] = recompute.depend %x after [[T1]]
// CHECK-NEXT:    [[A1:%\w+]] = stablehlo.sine [[X1]] {recompute.segment = "p", recompute.id = 0 : i64, recompute.copy = 2
// CHECK-NEXT:    %g2 = stablehlo.multiply %g1, [[A1]]
// ONE-LABEL:   func.func @spine
// ONE:           [[A:%\w+]] = stablehlo.sine {{%\w+}} {recompute.segment = "p", recompute.id = 0 : i64, recompute.copy = 1
// ONE:           %g2 = stablehlo.multiply %g1, [[A]]
// ONE-NOT:       recompute.copy = 2

// -----

// Segment p is entered twice, with %k between. The cotangent of the first entry depends on the gradients of the second,
// so each entry has a token of its own.
func.func @entered_twice(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %b = stablehlo.tanh %a {recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/tanh")
  %k = stablehlo.negate %b : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %c = stablehlo.sine %k {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %d = stablehlo.tanh %c {recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/tanh")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  %g2 = stablehlo.negate %g1 : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %g3 = stablehlo.multiply %g2, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  func.return %d, %g3 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @entered_twice
// CHECK:         %g0 = stablehlo.multiply
// CHECK-NEXT:    recompute.token %g0
// CHECK-NEXT:    [[K:%\w+]] = recompute.depend %k
// CHECK-NEXT:    [[C:%\w+]] = stablehlo.sine [[K]]
// CHECK-NEXT:    %g1 = stablehlo.multiply %g0, [[C]]
// CHECK-NEXT:    %g2 = stablehlo.negate %g1
// CHECK-NEXT:    recompute.token %g2
// CHECK-NEXT:    [[X:%\w+]] = recompute.depend %x
// CHECK-NEXT:    [[A:%\w+]] = stablehlo.sine [[X]]
// CHECK-NEXT:    %g3 = stablehlo.multiply %g2, [[A]]

// -----

// Decisions are per result: the reader of the kept first result reads the original, that of the second reads the copy.
func.func @per_result(%x: tensor<4xf32>, %i: tensor<i32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %n = stablehlo.constant dense<1> : tensor<i32>
  %w:2 = "stablehlo.case"(%i) ({
    %s = stablehlo.sine %x : tensor<4xf32>
    %t = stablehlo.tanh %x : tensor<4xf32>
    stablehlo.return %s, %t : tensor<4xf32>, tensor<4xf32>
  }) {recompute.recompute = [false, true]} : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) loc("jit(f)/jvp()/case")
  %y = stablehlo.add %w#0, %w#1 : tensor<4xf32> loc("jit(f)/jvp()/add")
  %g0 = stablehlo.multiply %ct, %y : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %w#1 : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %g1, %w#0 : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %g2 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @per_result
// CHECK:         [[W:%\w+]], [[V:%\w+]] = "stablehlo.case"(%i)
// CHECK:         %g0 = stablehlo.multiply
// CHECK:         [[CW:%\w+]], [[CV:%\w+]] = "stablehlo.case"({{%\w+}})
// CHECK:         %g1 = stablehlo.multiply %g0, [[CV]]
// CHECK-NEXT:    %g2 = stablehlo.multiply %g1, [[W]] :

// -----

// Marked operations outside segments form a segment of their own, without the unmarked operations between them: %b leads out
// of it and back in, so each entry has a token of its own.
func.func @by_hand(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp()/sin")
  %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp()/tanh")
  %c = stablehlo.sine %b {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp()/sin")
  %d = stablehlo.tanh %c : tensor<4xf32> loc("jit(f)/jvp()/tanh")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %c : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %g1, %a : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %d, %g2 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @by_hand
// CHECK:         recompute.token %g0
// CHECK:         %g1 = stablehlo.multiply
// CHECK-NEXT:    recompute.token %g1
// CHECK:         %g2 = stablehlo.multiply

// -----

// The output %b of segment p is read first, then segment q is entered, then the inside of p. The spine of the first
// reader recomputes %b, and its inside dies at once.
func.func @read_early(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %b = stablehlo.exponential %a {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/exp")
  %c = stablehlo.tanh %x {recompute.recompute = true, recompute.segment = "q"} : tensor<4xf32> loc("jit(f)/jvp(q)/tanh")
  %e = stablehlo.negate %c {recompute.segment = "q"} : tensor<4xf32> loc("jit(f)/jvp(q)/neg")
  %d = stablehlo.add %b, %e : tensor<4xf32> loc("jit(f)/jvp()/add")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %b : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %g1, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(q))/mul")
  %g3 = stablehlo.multiply %g2, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(p))/mul")
  func.return %d, %g3 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @read_early
// CHECK:         recompute.token %g0 :
// CHECK:         [[A:%\w+]] = stablehlo.sine {{.*}} recompute.copy = 1
// CHECK-NEXT:    [[B:%\w+]] = stablehlo.exponential [[A]] {{.*}} recompute.copy = 1
// CHECK-NEXT:    %g1 = stablehlo.multiply %g0, [[B]] {
// CHECK-NEXT:    recompute.token %g1 :
// CHECK:         [[C:%\w+]] = stablehlo.tanh {{.*}} recompute.copy = 1
// CHECK-NEXT:    %g2 = stablehlo.multiply %g1, [[C]] {
// CHECK-NEXT:    recompute.token %g2 :
// CHECK:         [[A2:%\w+]] = stablehlo.sine {{.*}} recompute.copy = 2
// CHECK-NEXT:    %g3 = stablehlo.multiply %g2, [[A2]] {

// -----

// A spine has recomputed %b, which is still live. The later copies of the inside of p read it, so only %a is copied
// again.
func.func @held(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %b = stablehlo.exponential %a {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/exp")
  %e = stablehlo.cosine %b {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/cos")
  %f = stablehlo.add %e, %a {recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/add")
  %c = stablehlo.tanh %b {recompute.recompute = true, recompute.segment = "q"} : tensor<4xf32> loc("jit(f)/jvp(q)/tan")
  %d = stablehlo.add %c, %f {recompute.segment = "q"} : tensor<4xf32> loc("jit(f)/jvp(q)/add")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %c : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g2 = stablehlo.multiply %g1, %e : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g3 = stablehlo.multiply %g2, %a : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %d, %g3 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @held
// CHECK:         [[B:%\w+]] = stablehlo.exponential {{.*}} recompute.copy = 1
// CHECK:         %g1 = stablehlo.multiply
// CHECK-NOT:     stablehlo.exponential
// CHECK:         [[BD:%\w+]] = recompute.depend
// CHECK-NOT:     stablehlo.exponential
// CHECK:         stablehlo.cosine
// CHECK-NOT:     stablehlo.exponential
// CHECK:         %g3 = stablehlo.multiply

// -----

// An output that is computed only from constants needs no copy.
func.func @constant_output(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %k = stablehlo.constant dense<1.0> : tensor<4xf32>
  %a = stablehlo.sine %k {recompute.recompute = true, recompute.segment = "p"} : tensor<4xf32> loc("jit(f)/jvp(p)/sin")
  %d = stablehlo.add %a, %x : tensor<4xf32> loc("jit(f)/jvp()/add")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %g0, %a : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %d, %g1 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @constant_output
// CHECK:         %g0 = stablehlo.multiply
// CHECK-NEXT:    %g1 = stablehlo.multiply %g0, %a :
