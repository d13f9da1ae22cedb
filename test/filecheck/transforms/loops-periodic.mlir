// RUN: recompute-opt %s -p 'recompute-loops{loops="periodic(3)"}' 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file=%t
// RUN: xdsl-opt %s -p 'recompute-loops{loops="periodic(3)"}' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-loops{loops="periodic(1)"}' 2>&1 | filecheck %s --check-prefix=MORE
// RUN: not recompute-opt %s -p 'recompute-loops{loops="periodic(0)"}' 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not recompute-opt %s -p 'recompute{loops="every(3)"}' 2>&1 | filecheck %s --check-prefix=BAD

// Eight iterations become two chunks of three and two remaining iterations, whose carries are not stacked.
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
// CHECK-LABEL: func.func public @carry
// The first pass stacks two carries, and runs the remaining iterations.
// CHECK:         stablehlo.while([[Q:%\w+]] = {{%\w+}}, [[H:%\w+]] = %x, [[S:%\w+]] = {{%\w+}}) : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
// CHECK:         [[H1:%\w+]] = stablehlo.broadcast_in_dim [[H]]
// CHECK:         stablehlo.dynamic_update_slice [[S]], [[H1]], [[Q]]
// CHECK:         stablehlo.while({{%\w+}} = {{%\w+}}, {{%\w+}} = [[H]]) : tensor<i32>, tensor<4xf32>
// CHECK-NEXT:    cond
// CHECK-NEXT:      stablehlo.constant dense<3>
// CHECK:         stablehlo.while
// CHECK-NEXT:    cond
// CHECK-NEXT:      stablehlo.constant dense<2>
// The remaining iterations are rerun for their gradient, and then each chunk, from the last to the first.
// CHECK:         stablehlo.while({{.*}}) : tensor<i32>, tensor<4xf32>, tensor<2x4xf32>
// CHECK:         stablehlo.while({{%\w+}} = {{%\w+}}, {{%\w+}} = %ct) : tensor<i32>, tensor<4xf32>
// CHECK:         stablehlo.while([[P:%\w+]] = {{%\w+}}, {{%\w+}} = {{%\w+}}) : tensor<i32>, tensor<4xf32>
// CHECK:         [[AT:%\w+]] = stablehlo.subtract {{%\w+}}, [[P]]
// CHECK:         stablehlo.dynamic_slice {{%\w+}}, [[AT]]
// CHECK:         stablehlo.while({{.*}}) : tensor<i32>, tensor<4xf32>, tensor<3x4xf32>
// CHECK:         stablehlo.while({{.*}}) : tensor<i32>, tensor<4xf32>
// CHECK-NOT:     stablehlo.while
// REMARK:        remark: the loop of 8 iterations saves its carries every 3 iterations, 96 bytes instead of 128 bytes of stacks; 8 iterations are rerun, with 3 operations each
// MORE:          remark: the loop is left as it is: its carries every iteration and the slices recomputed from them need 144 bytes, but its stacks need only 128 bytes
// BAD:           error: loops must be true, false, keep(50%), keep(2GiB), periodic(8) with any number from 1 on, periodic(auto), binomial(4) or binomial(1GiB), not '{{periodic\(0\)|every\(3\)}}'
