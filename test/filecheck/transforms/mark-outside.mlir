// RUN: recompute-opt %s -p 'recompute-mark,recompute-clone,recompute-cse' --split-input-file 2>/dev/null | filecheck %s

// Outside segments, an operation that only the gradient reads moves to its reader, and the original is erased.
func.func @moved(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %y = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %d = stablehlo.cosine %x : tensor<64xf32> loc("jit(f)/jvp()/cos")
  %e = stablehlo.negate %d : tensor<64xf32> loc("jit(f)/jvp()/neg")
  %g = stablehlo.multiply %ct, %y : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %e : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %h : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @moved
// CHECK-NEXT:    %y = stablehlo.sine %x : tensor<64xf32>
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %y
// CHECK-NEXT:    [[T:%\w+]] = recompute.token %g
// CHECK-NEXT:    [[X:%\w+]] = recompute.depend %x after [[T]]
// CHECK-NEXT:    [[D:%\w+]] = stablehlo.cosine [[X]] {recompute.id = {{\d+}} : i64, recompute.copy = 1 : i64
// CHECK-NEXT:    [[E:%\w+]] = stablehlo.negate [[D]]
// CHECK-NEXT:    %h = stablehlo.multiply %g, [[E]]

// -----

// A comparison is kept: its result is small, and its large operand would have to be kept instead.
func.func @not_moved(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %m = stablehlo.compare GT, %a, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1> loc("jit(f)/jvp()/gt")
  %y = stablehlo.cosine %a : tensor<64xf32> loc("jit(f)/jvp()/cos")
  %g = stablehlo.multiply %ct, %ct : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.select %m, %g, %ct : tensor<64xi1>, tensor<64xf32> loc("jit(f)/transpose(jvp())/select")
  func.return %y, %h : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @not_moved
// CHECK-NEXT:    %a = stablehlo.sine %x : tensor<64xf32>
// CHECK-NEXT:    %m = stablehlo.compare
// CHECK-NOT:     recompute.token
