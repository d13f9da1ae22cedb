// RUN: recompute-opt %s -p recompute-loops --split-input-file --no-proof 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file=%t
// RUN: recompute-opt %s -p recompute-loops --split-input-file 2>/dev/null | filecheck %s

// The value tanh(h), which the second loop reads, is recomputed from h, which gets a stack in place of tanh(h).
func.func public @carry(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %n, %y, %s, %s2 = stablehlo.while(%i = %zero, %h = %x, %a = %empty, %b = %empty) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  cond {
    %end = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
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
  %m, %g, %r, %r2 = stablehlo.while(%j = %zero, %d = %ct, %k = %s, %l = %s2) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
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
// If one saved value follows from another, one stack is kept: the second loop recomputes cos(tanh) from tanh.
// CHECK-LABEL: func.func public @carry
// CHECK:         stablehlo.while({{%\w+}} = {{%\w+}}, {{%\w+}} = %x, [[A:%\w+]] = {{%\w+}}) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>
// CHECK:         [[T:%\w+]] = stablehlo.tanh
// CHECK:         stablehlo.dynamic_update_slice [[A]]
// CHECK-NOT:     stablehlo.dynamic_update_slice
// CHECK:         stablehlo.while([[J:%\w+]] = {{%\w+}}, {{%\w+}} = %ct, [[K:%\w+]] = {{%\w+}})
// CHECK:         [[AT:%\w+]] = stablehlo.subtract {{%\w+}}, [[J]]
// CHECK:         [[S:%\w+]] = stablehlo.dynamic_slice [[K]], [[AT]]
// CHECK:         stablehlo.cosine {{%\w+}} {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated, recompute.need_cse}
// CHECK-NOT:     stablehlo.dynamic_slice
// REMARK:        loops.mlir:{{[0-9]+}}:{{[0-9]+}}: remark: the loop of 8 iterations drops 1 stack (128 B) and adds 0 B of new stacks: the loop that reads them recomputes 2 operations

// -----

// A loop of unknown trip count is left unchanged, with a remark.
func.func public @bound(%x: tensor<4xf32>, %ct: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %w, %y, %s = stablehlo.while(%i = %zero, %h = %x, %a = %empty) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.tanh %h : tensor<4xf32>
    %t1 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %t1, %i, %o : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %t, %a1 : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>
  }
  %m, %g, %r = stablehlo.while(%j = %zero, %d = %ct, %k = %s) : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>
  cond {
    %c = stablehlo.compare LT, %j, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t1 = stablehlo.dynamic_slice %k, %j, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %t = stablehlo.reshape %t1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %p = stablehlo.multiply %d, %t : tensor<4xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %p, %k : tensor<i32>, tensor<4xf32>, tensor<8x4xf32>
  }
  func.return %g : tensor<4xf32>
}
// CHECK-LABEL: func.func public @bound
// CHECK-NOT:     recompute.copy
// REMARK:        remark: the loop is left as it is: its counter does not increase by one up to a constant, so the iteration that wrote a slice is unknown
