// RUN: recompute-opt %s -p recompute-loops | filecheck %s

// On a mesh with explicit axes JAX writes constraints on the counter and on each stack. The counter is recognised behind
// them. Those on stacks are dropped, since the slices keep their sharding by the constraints where they are read.

// CHECK-LABEL: func.func public @carry
// CHECK: stablehlo.while
// CHECK: sdy.sharding_constraint %{{.*}} <@mesh, []> : tensor<i32>
// CHECK: [[T:%\w+]] = stablehlo.tanh
// CHECK-NEXT: [[S:%\w+]] = stablehlo.broadcast_in_dim [[T]], dims = [1]
// CHECK-NEXT: stablehlo.dynamic_update_slice %{{.*}}, [[S]], %
// CHECK-NOT: sdy.sharding_constraint %{{.*}} <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
// CHECK: stablehlo.while
// CHECK: [[X:%\w+]] = stablehlo.dynamic_slice
// CHECK: stablehlo.cosine {{.*}}recompute.duplicated
// CHECK: sdy.sharding_constraint %{{.*}} <@mesh, [{"d"}]> : tensor<4xf32>

sdy.mesh @mesh = <["d"=2]>
func.func public @carry(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %n, %y, %s, %s2 = stablehlo.while(%i = %zero, %h = %x, %a = %empty, %b = %empty) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  cond {
    %end = stablehlo.constant dense<8> : tensor<i32>
    %i0 = sdy.sharding_constraint %i <@mesh, []> : tensor<i32>
    %c = stablehlo.compare LT, %i0, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.tanh %h : tensor<4xf32>
    %u = stablehlo.cosine %t : tensor<4xf32>
    %t1 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %t2 = sdy.sharding_constraint %t1 <@mesh, [{}, {"d"}]> : tensor<1x4xf32>
    %a0 = stablehlo.dynamic_update_slice %a, %t2, %i, %o : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    %a1 = sdy.sharding_constraint %a0 <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
    %u1 = stablehlo.broadcast_in_dim %u, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %b0 = stablehlo.dynamic_update_slice %b, %u1, %i, %o : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    %b1 = sdy.sharding_constraint %b0 <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
    %next = stablehlo.sine %t : tensor<4xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %next, %a1, %b1 : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
  %ks = sdy.sharding_constraint %s <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
  %ls = sdy.sharding_constraint %s2 <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
  %m, %g, %r, %r2 = stablehlo.while(%j = %zero, %d = %ct, %k = %ks, %l = %ls) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  cond {
    %end = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<7> : tensor<i32>
    %at = stablehlo.subtract %last, %j : tensor<i32>
    %t0 = stablehlo.dynamic_slice %k, %at, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %t1 = sdy.sharding_constraint %t0 <@mesh, [{}, {"d"}]> : tensor<1x4xf32>
    %t2 = stablehlo.reshape %t1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %t = sdy.sharding_constraint %t2 <@mesh, [{"d"}]> : tensor<4xf32>
    %u0 = stablehlo.dynamic_slice %l, %at, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %u1 = sdy.sharding_constraint %u0 <@mesh, [{}, {"d"}]> : tensor<1x4xf32>
    %u2 = stablehlo.reshape %u1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %u = sdy.sharding_constraint %u2 <@mesh, [{"d"}]> : tensor<4xf32>
    %p = stablehlo.multiply %d, %t : tensor<4xf32>
    %q = stablehlo.multiply %p, %u : tensor<4xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %q, %k, %l : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
  func.return %y, %g : tensor<4xf32>, tensor<4xf32>
}

// The second loop reads, and constrains, only half of the slices.

// CHECK-LABEL: func.func public @half
// CHECK: stablehlo.dynamic_update_slice
// CHECK-NEXT: sdy.sharding_constraint %{{.*}} <@mesh, [{}, {"d"}]> : tensor<8x4xf32>

func.func public @half(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %n, %y, %s, %s2 = stablehlo.while(%i = %zero, %h = %x, %a = %empty, %b = %empty) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  cond {
    %end = stablehlo.constant dense<8> : tensor<i32>
    %i0 = sdy.sharding_constraint %i <@mesh, []> : tensor<i32>
    %c = stablehlo.compare LT, %i0, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.tanh %h : tensor<4xf32>
    %u = stablehlo.cosine %t : tensor<4xf32>
    %t1 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %t2 = sdy.sharding_constraint %t1 <@mesh, [{}, {"d"}]> : tensor<1x4xf32>
    %a0 = stablehlo.dynamic_update_slice %a, %t2, %i, %o : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    %a1 = sdy.sharding_constraint %a0 <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
    %u1 = stablehlo.broadcast_in_dim %u, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %b0 = stablehlo.dynamic_update_slice %b, %u1, %i, %o : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    %b1 = sdy.sharding_constraint %b0 <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
    %next = stablehlo.sine %t : tensor<4xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %next, %a1, %b1 : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
  %ks = sdy.sharding_constraint %s <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
  %ls = sdy.sharding_constraint %s2 <@mesh, [{}, {"d"}]> : tensor<8x4xf32>
  %m, %g, %r, %r2 = stablehlo.while(%j = %zero, %d = %ct, %k = %ks, %l = %ls) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %c = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<7> : tensor<i32>
    %at = stablehlo.subtract %last, %j : tensor<i32>
    %t0 = stablehlo.dynamic_slice %k, %at, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %t1 = sdy.sharding_constraint %t0 <@mesh, [{}, {"d"}]> : tensor<1x4xf32>
    %t2 = stablehlo.reshape %t1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %t = sdy.sharding_constraint %t2 <@mesh, [{"d"}]> : tensor<4xf32>
    %u0 = stablehlo.dynamic_slice %l, %at, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %u1 = sdy.sharding_constraint %u0 <@mesh, [{}, {"d"}]> : tensor<1x4xf32>
    %u2 = stablehlo.reshape %u1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %u = sdy.sharding_constraint %u2 <@mesh, [{"d"}]> : tensor<4xf32>
    %p = stablehlo.multiply %d, %t : tensor<4xf32>
    %q = stablehlo.multiply %p, %u : tensor<4xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %q, %k, %l : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
  func.return %y, %g : tensor<4xf32>, tensor<4xf32>
}
