// RUN: recompute-opt %s -p recompute-loops --no-print-debuginfo -o %t.mlir 2>/dev/null
// RUN: recompute-check %s %t.mlir | filecheck %s --check-prefix=EQUAL
// RUN: sed 's/dense<8> : tensor<i32>/dense<7> : tensor<i32>/' %t.mlir > %t.limit.mlir && not recompute-check %s %t.limit.mlir | filecheck %s --check-prefix=LIMIT
// RUN: sed 's/compare LT, %j/compare LE, %j/' %t.mlir > %t.relation.mlir && not recompute-check %s %t.relation.mlir | filecheck %s --check-prefix=RELATION
// RUN: sed 's/%one = stablehlo.constant dense<1>/%one = stablehlo.constant dense<2>/' %t.mlir > %t.step.mlir && not recompute-check %s %t.step.mlir | filecheck %s --check-prefix=STEP
// RUN: sed 's/%zero = stablehlo.constant dense<0>/%zero = stablehlo.constant dense<1>/' %t.mlir > %t.start.mlir && not recompute-check %s %t.start.mlir | filecheck %s --check-prefix=START
// RUN: sed 's/stablehlo.sine/stablehlo.exponential/' %t.mlir > %t.body.mlir && not recompute-check %s %t.body.mlir | filecheck %s --check-prefix=BODY

// If the comparison ends at two loops, the error says what differs between them, or between the loops before them.

// EQUAL:    proved equal, by the rules for loops and conditionals
// LIMIT:    the loops at {{.*}}check-loops.mlir:{{[0-9]+:[0-9]+}} and {{.*}}limit.mlir:{{[0-9]+:[0-9]+}} count differently: before i = 0; i < 8; i += 1 (8 iterations), after i = 0; i < 7; i += 1 (7 iterations)
// RELATION: count differently: before i = 0; i < 8; i += 1 (8 iterations), after i = 0; i <= 8; i += 1 (9 iterations)
// STEP:     count differently: before i = 0; i < 8; i += 1 (8 iterations), after i = 0; i < 8; i += 2 (4 iterations)
// START:    count differently: before i = 0; i < 8; i += 1 (8 iterations), after i = 1; i < 8; i += 1 (7 iterations)
// BODY:     result #0 of @carry differs: result 0 of region 0 of stablehlo.while: before stablehlo.sine at {{.*}}check-loops.mlir:36:13, after stablehlo.exponential at {{.*}}body.mlir:

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
