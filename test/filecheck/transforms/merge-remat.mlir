// RUN: recompute-opt %s -p recompute-merge-remat | filecheck %s
// RUN: recompute-opt %s -p recompute-merge-remat --print-debuginfo | filecheck %s --check-prefix=WHERE

// The second forward pass of jax.checkpoint is merged with the first. Operations only in the second move to the first, with
// their constants, and a remark reports it.
func.func @merged(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %y = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(b)/tanh")
  %z = stablehlo.negate %y : tensor<4xf32> loc("jit(f)/jvp(c)/neg")
  %g = stablehlo.multiply %ct, %z : tensor<4xf32> loc("jit(f)/transpose(jvp(c))/mul")
  %0:2 = stablehlo.optimization_barrier %x, %g : tensor<4xf32>, tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %b = stablehlo.sine %0#0 : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/jvp(b)/checkpoint/rematted_computation/sin")
  %t = stablehlo.tanh %b : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/jvp(b)/checkpoint/rematted_computation/tanh")
  %one = stablehlo.constant dense<1.0> : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %d = stablehlo.subtract %one, %t : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/jvp(b)/checkpoint/rematted_computation/sub")
  %h = stablehlo.multiply %0#1, %d : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/jvp(b)/checkpoint/mul")
  func.return %z, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @merged
// CHECK-NEXT:    %a = stablehlo.sine %x
// CHECK-NEXT:    %y = stablehlo.tanh %a
// CHECK-NEXT:    %one = stablehlo.constant
// CHECK-NEXT:    %d = stablehlo.subtract %one, %y
// CHECK-NEXT:    %z = stablehlo.negate %y
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %z
// CHECK-NEXT:    %h = stablehlo.multiply %g, %d
// CHECK-NEXT:    func.return %z, %h
// WHERE-LABEL: func.func @merged
// WHERE:         stablehlo.subtract %one, %y : tensor<4xf32> loc([[SUB:#loc\d+]])
// WHERE:         [[SUB]] = loc("jit(f)/jvp(b)/sub")

// A constant with two readers moves before the earlier reader, even if the later one is processed first.
func.func @shared(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %y = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(b)/tanh")
  %g = stablehlo.multiply %ct, %y : tensor<4xf32> loc("jit(f)/transpose(jvp(c))/mul")
  %0 = stablehlo.optimization_barrier %y : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %c = stablehlo.constant dense<1.0> : tensor<f32> loc("jit(f)/transpose(jvp(b))/remat2")
  %one = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/sub")
  %d = stablehlo.subtract %one, %0 : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/sub")
  %e = stablehlo.add %one, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/add")
  %h = stablehlo.multiply %g, %d : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  %i = stablehlo.multiply %h, %e : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  func.return %y, %i : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @shared
// CHECK-NEXT:    %a = stablehlo.sine %x
// CHECK-NEXT:    %c = stablehlo.constant
// CHECK-NEXT:    %one = stablehlo.broadcast_in_dim %c
// CHECK-NEXT:    %e = stablehlo.add %one, %a
// CHECK-NEXT:    %y = stablehlo.tanh %a
// CHECK-NEXT:    %d = stablehlo.subtract %one, %y
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %y

// Twins outside the second forward pass are not merged, but their readers are merged with each other.
func.func @twins(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %b = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %c = stablehlo.multiply %a, %b : tensor<4xf32> loc("jit(f)/jvp(b)/mul")
  %s = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/transpose(jvp(c))/sin")
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %d = stablehlo.sine %0 : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/sin")
  %e = stablehlo.multiply %d, %d : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/mul")
  %g = stablehlo.multiply %ct, %e : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  %h = stablehlo.add %g, %s : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/add_any")
  func.return %c, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @twins
// CHECK-NEXT:    %a = stablehlo.sine %x
// CHECK-NEXT:    %b = stablehlo.sine %x
// CHECK-NEXT:    %c = stablehlo.multiply %a, %b
// CHECK-NEXT:    %s = stablehlo.sine %x
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %c
// CHECK-NEXT:    %h = stablehlo.add %g, %s

// The number and the order of effects stay the same, and so do the operations that read their results.
func.func @effects(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.custom_call @tell(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/jvp(b)/tell")
  %y = stablehlo.sine %a : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %g = stablehlo.multiply %ct, %y : tensor<4xf32> loc("jit(f)/transpose(jvp(c))/mul")
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %b = stablehlo.custom_call @tell(%0) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/tell")
  %c = stablehlo.cosine %b : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/cos")
  %h = stablehlo.multiply %g, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @effects
// CHECK-NEXT:    %a = stablehlo.custom_call @tell(%x)
// CHECK-NEXT:    %y = stablehlo.sine %a
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %y
// CHECK-NEXT:    %b = stablehlo.custom_call @tell(%x)
// CHECK-NEXT:    %c = stablehlo.cosine %b
// CHECK-NEXT:    %h = stablehlo.multiply %g, %c

// A barrier that the user wrote stays, even if jax.checkpoint repeats the operations around it.
func.func @barriers(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(f)/jvp(b)/optimization_barrier")
  %y = stablehlo.sine %a : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %g = stablehlo.optimization_barrier %ct : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/optimization_barrier")
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %b = stablehlo.optimization_barrier %0 : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/optimization_barrier")
  %c = stablehlo.sine %b : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/sin")
  %h = stablehlo.multiply %g, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @barriers
// CHECK-NEXT:    %a = stablehlo.optimization_barrier %x
// CHECK-NEXT:    %y = stablehlo.sine %a
// CHECK-NEXT:    %g = stablehlo.optimization_barrier %ct
// CHECK-NEXT:    %h = stablehlo.multiply %g, %y

// The body of a checkpoint in a function is inlined first.
func.func @called(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = func.call @sine(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/jvp(b)/jit(sine)")
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %c = func.call @sine(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/jit(sine)")
  %h = stablehlo.multiply %ct, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}
func.func private @sine(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.sine %x : tensor<4xf32> loc("sin")
  func.return %y : tensor<4xf32>
}
// CHECK-LABEL: func.func @called
// CHECK-NEXT:    [[Y:%\w+]] = stablehlo.sine %x
// CHECK-NEXT:    [[H:%\w+]] = stablehlo.multiply %ct, [[Y]]
// CHECK-NEXT:    func.return [[Y]], [[H]]
// CHECK-NOT:     func.func private @sine

// A branch with more results in the second forward pass than in the first is not merged. It stays, with its readers:
// in the first forward pass it would run a third time if that is recomputed.
func.func @branches(%x: tensor<4xf32>, %p: tensor<i32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = "stablehlo.case"(%p) ({
    %s = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32> loc("jit(f)/jvp(b)/cond")
  %g = stablehlo.multiply %ct, %y : tensor<4xf32> loc("jit(f)/transpose(jvp(c))/mul")
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %z:2 = "stablehlo.case"(%p) ({
    %s = stablehlo.sine %0 : tensor<4xf32>
    %c = stablehlo.cosine %0 : tensor<4xf32>
    stablehlo.return %s, %c : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/cond")
  %d = stablehlo.negate %z#1 : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/neg")
  %h = stablehlo.multiply %g, %d : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @branches
// CHECK-NEXT:    %y = "stablehlo.case"(%p)
// CHECK:         %g = stablehlo.multiply %ct, %y
// CHECK-NEXT:    "stablehlo.case"(%p)
// CHECK:           stablehlo.cosine %x
// CHECK:         %d = stablehlo.negate
// CHECK-NEXT:    %h = stablehlo.multiply %g, %d

// A loop in the second forward pass is merged with its twin, although its body repeats an operation: its body stays
// equal to that of the twin until the loop is compared.
func.func @loop(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %u = stablehlo.while(%p = %x) : tensor<4xf32>
  cond {
    %c = stablehlo.constant dense<false> : tensor<i1> loc("jit(f)/jvp(b)/while/cond/lt")
    stablehlo.return %c : tensor<i1>
  } do {
    %s = stablehlo.sine %p : tensor<4xf32> loc("jit(f)/jvp(b)/while/body/sin")
    %t = stablehlo.sine %p : tensor<4xf32> loc("jit(f)/jvp(b)/while/body/sin")
    %w = stablehlo.add %s, %t : tensor<4xf32> loc("jit(f)/jvp(b)/while/body/add")
    stablehlo.return %w : tensor<4xf32>
  } loc("jit(f)/jvp(b)/while")
  %y = stablehlo.tanh %u : tensor<4xf32> loc("jit(f)/jvp(b)/tanh")
  %g = stablehlo.multiply %ct, %y : tensor<4xf32> loc("jit(f)/transpose(jvp(c))/mul")
  %0:2 = stablehlo.optimization_barrier %x, %g : tensor<4xf32>, tensor<4xf32> loc("jit(f)/transpose(jvp(b))/remat2")
  %v = stablehlo.while(%q = %0#0) : tensor<4xf32>
  cond {
    %c = stablehlo.constant dense<false> : tensor<i1> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/while/cond/lt")
    stablehlo.return %c : tensor<i1>
  } do {
    %s = stablehlo.sine %q : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/while/body/sin")
    %t = stablehlo.sine %q : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/while/body/sin")
    %w = stablehlo.add %s, %t : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/while/body/add")
    stablehlo.return %w : tensor<4xf32>
  } loc("jit(f)/transpose(jvp(b))/checkpoint/rematted_computation/while")
  %h = stablehlo.multiply %0#1, %v : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/checkpoint/mul")
  func.return %y, %h : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @loop
// CHECK:         %u = stablehlo.while
// CHECK:         %y = stablehlo.tanh %u
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %y
// CHECK-NEXT:    %h = stablehlo.multiply %g, %u
// CHECK-NEXT:    func.return %y, %h
