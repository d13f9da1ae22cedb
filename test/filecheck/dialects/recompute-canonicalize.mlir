// RUN: recompute-opt %s -p canonicalize | filecheck %s
// RUN: recompute-opt %s -p canonicalize,cse,dce,canonicalize,cse,dce,canonicalize,cse,dce | filecheck %s
// RUN: xdsl-opt %s -p canonicalize | filecheck %s

// A duplicate operand of a token is removed. The gate is kept.
// CHECK-LABEL: func.func @repeated_gates
// CHECK-NEXT:    %t = recompute.token %g, %h : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:    %a = recompute.depend %x after %t
func.func @repeated_gates(%x: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>) -> tensor<4xf32> {
  %t = recompute.token %g, %h, %g : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  %a = recompute.depend %x after %t : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// Operations without uses are erased: a depend, and the tokens that only it uses.
// CHECK-LABEL: func.func @unread
// CHECK-NEXT:    func.return %x
func.func @unread(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %t = recompute.token %g : tensor<4xf32>
  %c = recompute.depend %x after %t : tensor<4xf32>
  %u = recompute.token %g : tensor<4xf32>
  %a = recompute.depend %x after %u : tensor<4xf32>
  %v = recompute.token %x : tensor<4xf32>
  func.return %x : tensor<4xf32>
}

// Two depends on one token become one; a value that both delay is delayed once.
// CHECK-LABEL: func.func @merged
// CHECK-NEXT:    %t = recompute.token %g
// CHECK-NEXT:    %a, %b = recompute.depend %x, %y after %t : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:    %d = stablehlo.add %a, %b
// CHECK-NEXT:    %e = stablehlo.add %d, %a
func.func @merged(%x: tensor<4xf32>, %y: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %t = recompute.token %g : tensor<4xf32>
  %a = recompute.depend %x after %t : tensor<4xf32>
  %b, %c = recompute.depend %y, %x after %t : tensor<4xf32>, tensor<4xf32>
  %d = stablehlo.add %a, %b : tensor<4xf32>
  %e = stablehlo.add %d, %c : tensor<4xf32>
  func.return %e : tensor<4xf32>
}

// Two depends are not merged if the second value is defined after the first depend, or if their attributes differ.
// CHECK-LABEL: func.func @apart
// CHECK-NEXT:    %t = recompute.token %g
// CHECK-NEXT:    %a = recompute.depend %x after %t
// CHECK-NEXT:    %y = stablehlo.sine %a
// CHECK-NEXT:    %b = recompute.depend %y after %t
// CHECK-NEXT:    %c = recompute.depend %g after %t {recompute.phase = "gradient"}
func.func @apart(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = recompute.token %g : tensor<4xf32>
  %a = recompute.depend %x after %t : tensor<4xf32>
  %y = stablehlo.sine %a : tensor<4xf32>
  %b = recompute.depend %y after %t : tensor<4xf32>
  %c = recompute.depend %g after %t {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %b, %c : tensor<4xf32>, tensor<4xf32>
}

// A second depend on the same token is removed, a depend on another token is kept.
// CHECK-LABEL: func.func @again
// CHECK-NEXT:    %t = recompute.token %g
// CHECK-NEXT:    %u = recompute.token %h
// CHECK-NEXT:    %a = recompute.depend %x after %t
// CHECK-NEXT:    %c = recompute.depend %a after %u
// CHECK-NEXT:    func.return %a, %c
func.func @again(%x: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = recompute.token %g : tensor<4xf32>
  %u = recompute.token %h : tensor<4xf32>
  %a = recompute.depend %x after %t : tensor<4xf32>
  %b = recompute.depend %a after %t : tensor<4xf32>
  %c = recompute.depend %a after %u : tensor<4xf32>
  func.return %b, %c : tensor<4xf32>, tensor<4xf32>
}

// Equal tokens are not merged, since each has its own place in the backward pass.
// CHECK-LABEL: func.func @two_tokens
// CHECK-COUNT-2: recompute.token
func.func @two_tokens(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %t = recompute.token %g : tensor<4xf32>
  %u = recompute.token %g : tensor<4xf32>
  %a = recompute.depend %x after %t : tensor<4xf32>
  %b = recompute.depend %x after %u : tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}
