// RUN: recompute-opt %s -p recompute-verify --split-input-file | filecheck %s
// RUN: recompute-opt %s -p recompute-verify --split-input-file --verify-diagnostics

// A copy that waits for a gradient and is read instead of its original is valid.
func.func @sound(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.id = 0 : i64} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %g = stablehlo.negate %ct : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %t = recompute.token %g : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/token")
  %d = recompute.depend %x after %t : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/depend")
  %c = stablehlo.sine %d {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/recompute/sin")
  %h = stablehlo.multiply %g, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %a, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @sound
// CHECK:         recompute.token

// -----

// A function without a gradient and without copies is valid. A remark says that nothing was verified.
// expected-remark@unknown {{no copies to verify: there is no recompute.token, and no operation has the attribute recompute.copy; run recompute-clone before recompute-verify}}
func.func @nothing(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32>
  func.return %a, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

// Of an operation with two results, the kept one may be read directly, the other is read from its copy.
func.func @per_result(%x: tensor<4xf32>, %i: tensor<i32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %w:2 = "stablehlo.case"(%i) ({
    %s = stablehlo.sine %x : tensor<4xf32>
    %u = stablehlo.tanh %x : tensor<4xf32>
    stablehlo.return %s, %u : tensor<4xf32>, tensor<4xf32>
  }) {recompute.recompute = [false, true], recompute.id = 0, recompute.phase = "primal"} : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b = stablehlo.add %w#0, %w#1 {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d:2 = recompute.depend %x, %i after %t {recompute.phase = "gradient"} : tensor<4xf32>, tensor<i32>
  %c:2 = "stablehlo.case"(%d#1) ({
    %s = stablehlo.sine %d#0 : tensor<4xf32>
    %u = stablehlo.tanh %d#0 : tensor<4xf32>
    stablehlo.return %s, %u : tensor<4xf32>, tensor<4xf32>
  }) {recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %e = stablehlo.multiply %g, %w#0 {recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %e, %c#1 {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// Values computed only from constants may be read directly, without waiting.
func.func @constants(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %k = stablehlo.constant dense<1.0> : tensor<4xf32>
  %a = stablehlo.sine %k {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %e = stablehlo.cosine %k {recompute.phase = "primal"} : tensor<4xf32>
  %v = stablehlo.multiply %x, %e {recompute.recompute = true, recompute.segment = "p", recompute.id = 1, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %v {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  %c = stablehlo.multiply %d, %e {recompute.segment = "p", recompute.id = 1, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %f = stablehlo.multiply %c, %a {recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %f {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A copy may wait indirectly, through the copies that it reads, behind a barrier whose gradient result is read.
func.func @copies(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.segment = "p", recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.recompute = true, recompute.segment = "p", recompute.id = 1, recompute.phase = "primal"} : tensor<4xf32>
  %y = stablehlo.cosine %b {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %y {recompute.phase = "gradient"} : tensor<4xf32>
  %d:2 = "stablehlo.optimization_barrier"(%g, %x) {recompute.phase = "gradient"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c = stablehlo.sine %d#1 {recompute.segment = "p", recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %e = stablehlo.tanh %c {recompute.segment = "p", recompute.id = 1, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %d#0, %e {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// A barrier of another origin does not delay copies, and may wait for values that are available early.
// expected-remark@unknown {{no copies to verify}}
func.func @own_barrier(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %b = stablehlo.tanh %x {recompute.phase = "primal"} : tensor<4xf32>
  %u = stablehlo.negate %x {recompute.phase = "gradient"} : tensor<4xf32>
  %v:2 = "stablehlo.optimization_barrier"(%u, %x) {recompute.phase = "gradient"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %h = stablehlo.multiply %ct, %v#1 {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}

// -----

// Without a cotangent argument the gate is available once the last original has run. %b has a mark, but no copy:
// it is read directly. No operation reads %a behind the token.
func.func @no_cotangent(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.id = 0, recompute.phase = "primal"} : tensor<4xf32>
  %b = stablehlo.tanh %a {recompute.recompute = true, recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.negate %b {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d:2 = recompute.depend %x, %a after %t {recompute.phase = "gradient"} : tensor<4xf32>, tensor<4xf32>
  %c = stablehlo.sine %d#0 {recompute.id = 0, recompute.copy = 1, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %h : tensor<4xf32>, tensor<4xf32>
}
