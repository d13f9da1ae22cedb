// RUN: recompute-opt %s -p recompute-loops --remarks=text -o /dev/null 2>&1 | filecheck %s

// On a mesh with explicit axes JAX writes constraints on the counter and the stacks of a loop, which is left as it is.

// CHECK: remark: the loop is left as it is: its counter has sharding constraints, as JAX writes them for a mesh with explicit axes

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
    %a1 = stablehlo.dynamic_update_slice %a, %t1, %i, %o : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    %u1 = stablehlo.broadcast_in_dim %u, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %b1 = stablehlo.dynamic_update_slice %b, %u1, %i, %o : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
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
    %t1 = stablehlo.dynamic_slice %k, %at, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %t = stablehlo.reshape %t1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %u1 = stablehlo.dynamic_slice %l, %at, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %u = stablehlo.reshape %u1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %p = stablehlo.multiply %d, %t : tensor<4xf32>
    %q = stablehlo.multiply %p, %u : tensor<4xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %q, %k, %l : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
  func.return %y, %g : tensor<4xf32>, tensor<4xf32>
}
