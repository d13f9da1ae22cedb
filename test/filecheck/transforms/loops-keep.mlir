// RUN: recompute-opt %s -p 'recompute-loops{loops="keep(70%)"}' 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file=%t
// RUN: recompute-opt %s -p 'recompute-loops{loops="keep(40%)"}' 2>/dev/null | filecheck %s --check-prefix=LESS
// RUN: xdsl-opt %s -p 'recompute-loops{loops="keep(70%)"}' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-loops{loops="keep(1kB)"}' 2>&1 | filecheck %s --check-prefix=MANY
// RUN: not recompute-opt %s -p 'recompute-loops{loops="keep(-1)"}' 2>&1 | filecheck %s --check-prefix=BAD

// The second loop reads a product and its cosine. Of the two stacks the more expensive one is kept, if the limit allows
// it.
func.func public @dear(%w: tensor<8x8xf32>, %x: tensor<4x8xf32>, %ct: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<6x4x8xf32>
  %n, %y, %s, %s2, %s3 = stablehlo.while(%i = %zero, %h = %x, %a = %empty, %b = %empty, %c0 = %empty) : tensor<i32>, tensor<4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>
  cond {
    %end = stablehlo.constant dense<6> : tensor<i32>
    %c = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %u = stablehlo.cosine %t : tensor<4x8xf32>
    %next = stablehlo.sine %t : tensor<4x8xf32>
    %h1 = stablehlo.broadcast_in_dim %h, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %h1, %i, %o, %o : (tensor<6x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x4x8xf32>
    %t1 = stablehlo.broadcast_in_dim %t, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %b1 = stablehlo.dynamic_update_slice %b, %t1, %i, %o, %o : (tensor<6x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x4x8xf32>
    %u1 = stablehlo.broadcast_in_dim %u, dims = [1, 2] : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %c1 = stablehlo.dynamic_update_slice %c0, %u1, %i, %o, %o : (tensor<6x4x8xf32>, tensor<1x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x4x8xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %next, %a1, %b1, %c1 : tensor<i32>, tensor<4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>
  }
  %m, %g = stablehlo.while(%j = %zero, %d = %ct) : tensor<i32>, tensor<4x8xf32>
  cond {
    %end = stablehlo.constant dense<6> : tensor<i32>
    %c = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<5> : tensor<i32>
    %at = stablehlo.subtract %last, %j : tensor<i32>
    %h1 = stablehlo.dynamic_slice %s, %at, %o, %o, sizes = [1, 4, 8] : (tensor<6x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %h = stablehlo.reshape %h1 : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %t1 = stablehlo.dynamic_slice %s2, %at, %o, %o, sizes = [1, 4, 8] : (tensor<6x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %t = stablehlo.reshape %t1 : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %u1 = stablehlo.dynamic_slice %s3, %at, %o, %o, sizes = [1, 4, 8] : (tensor<6x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
    %u = stablehlo.reshape %u1 : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
    %p = stablehlo.multiply %d, %t : tensor<4x8xf32>
    %q = stablehlo.multiply %p, %u : tensor<4x8xf32>
    %r = stablehlo.add %q, %h : tensor<4x8xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %r : tensor<i32>, tensor<4x8xf32>
  }
  func.return %y, %g : tensor<4x8xf32>, tensor<4x8xf32>
}
// CHECK-LABEL: func.func public @dear
// CHECK:         stablehlo.while({{.*}}) : tensor<i32>, tensor<4x8xf32>, tensor<6x4x8xf32>, tensor<6x4x8xf32>
// CHECK:         stablehlo.while
// CHECK-NOT:     stablehlo.dot_general
// CHECK:         stablehlo.cosine {{%\w+}} {recompute.id
// CHECK:         func.return
// LESS-LABEL:  func.func public @dear
// LESS:          stablehlo.while
// LESS:          stablehlo.while
// LESS:          stablehlo.dot_general {{.*}}recompute.duplicated
// LESS:          stablehlo.cosine {{%\w+}} {recompute.id
// REMARK:        remark: the loop of 6 iterations drops 1 stack (768 B) and adds 0 B of new stacks: the loop that reads them recomputes 2 operations
// MANY:          the loop of 6 iterations
// BAD:           error: loops must be true, false, keep(50%), keep(2GiB), {{.*}}, not 'keep(-1)'
