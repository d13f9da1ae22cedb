// RUN: recompute-opt %s -p recompute-loops --no-proof 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file=%t
// RUN: recompute-opt %s -p recompute-loops 2>/dev/null | filecheck %s

// The saved row is a slice of %g of which a dimension is removed and added again, so the second loop reads %g itself.
func.func public @gain(%g: tensor<8x4xf32>, %x: tensor<4x4xf32>, %ct: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<8x1x4xf32>
  %n, %y, %s = stablehlo.while(%i = %zero, %h = %x, %a = %empty) : tensor<i32>, tensor<4x4xf32>, tensor<8x1x4xf32>
  cond {
    %end = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %gi = stablehlo.dynamic_slice %g, %i, %o, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %gr = stablehlo.reshape %gi : (tensor<1x4xf32>) -> tensor<4xf32>
    %row = stablehlo.broadcast_in_dim %gr, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %all = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %next = stablehlo.multiply %h, %all : tensor<4x4xf32>
    %r1 = stablehlo.broadcast_in_dim %row, dims = [1, 2] : (tensor<1x4xf32>) -> tensor<1x1x4xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %r1, %i, %o, %o : (tensor<8x1x4xf32>, tensor<1x1x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x1x4xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %next, %a1 : tensor<i32>, tensor<4x4xf32>, tensor<8x1x4xf32>
  }
  %m, %z, %r = stablehlo.while(%j = %zero, %d = %ct, %k = %s) : tensor<i32>, tensor<4x4xf32>, tensor<8x1x4xf32>
  cond {
    %end = stablehlo.constant dense<8> : tensor<i32>
    %c = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<7> : tensor<i32>
    %at = stablehlo.subtract %last, %j : tensor<i32>
    %r1 = stablehlo.dynamic_slice %k, %at, %o, %o, sizes = [1, 1, 4] : (tensor<8x1x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x4xf32>
    %row = stablehlo.reshape %r1 : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
    %all = stablehlo.broadcast_in_dim %row, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %e = stablehlo.multiply %d, %all : tensor<4x4xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %e, %k : tensor<i32>, tensor<4x4xf32>, tensor<8x1x4xf32>
  }
  func.return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: func.func public @gain
// CHECK:         stablehlo.while({{%\w+}} = {{%\w+}}, {{%\w+}} = %x) : tensor<i32>, tensor<4x4xf32>
// CHECK-NOT:     stablehlo.dynamic_update_slice
// CHECK:         stablehlo.while([[J:%\w+]] = {{%\w+}}, [[D:%\w+]] = %ct) : tensor<i32>, tensor<4x4xf32>
// CHECK:         [[AT:%\w+]] = stablehlo.subtract {{%\w+}}, [[J]]
// CHECK:         [[ROW:%\w+]] = stablehlo.dynamic_slice %g, [[AT]], {{%\w+}}, sizes = [1, 4] {{.*}}recompute.copy = 1
// CHECK-NEXT:    [[ALL:%\w+]] = stablehlo.broadcast_in_dim [[ROW]], dims = [0, 1] {{.*}}: (tensor<1x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:    stablehlo.multiply [[D]], [[ALL]]
// REMARK:        loops-shapes.mlir:10:16: remark: the loop of 8 iterations drops 1 stack (128 B) and adds 0 B of new stacks: the loop that reads them recomputes 5 operations
