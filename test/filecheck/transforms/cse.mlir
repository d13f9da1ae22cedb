// RUN: recompute-opt %s -p recompute-cse | filecheck %s
// RUN: recompute-opt %s -p recompute-cse,cse,canonicalize,dce,cse,canonicalize,dce,cse,canonicalize,dce | filecheck %s

// Equal operations (twins) of one phase are merged. A forward operation and its gradient twin are not merged, with a
// remark.
func.func @phases(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f1 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %f2 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %f3 = stablehlo.add %f1, %f2 : tensor<4xf32> loc("jit(f)/jvp(b)/add")
  %g1 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/sin")
  %g2 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/sin")
  %g3 = stablehlo.add %g1, %g2 : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/add")
  func.return %f3, %g3 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @phases
// CHECK-NEXT:    %f1 = stablehlo.sine %x {recompute.phase = "primal"}
// CHECK-NEXT:    %f3 = stablehlo.add %f1, %f1
// CHECK-NEXT:    %g1 = stablehlo.sine %x {recompute.phase = "gradient"}
// CHECK-NEXT:    %g3 = stablehlo.add %g1, %g1

// Twin copies of one segment merge; a copy never merges with its original, even without a token between them.
func.func @copies(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = stablehlo.sine %x {recompute.id = 0} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %g = stablehlo.negate %x : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %c1 = stablehlo.sine %x {recompute.id = 0, recompute.copy = 1, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/sin")
  %c2 = stablehlo.sine %x {recompute.id = 1, recompute.copy = 1, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/sin")
  %g3 = stablehlo.add %c1, %c2 : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/add")
  %g4 = stablehlo.add %g3, %g : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/add")
  func.return %f, %g4 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @copies
// CHECK-NEXT:    %f = stablehlo.sine
// CHECK-NEXT:    %g = stablehlo.negate
// CHECK-NEXT:    %c1 = stablehlo.sine
// CHECK-NEXT:    %g3 = stablehlo.add %c1, %c1

// A recomputed operation is not merged with a saved twin: merged with %h, %f would be saved too.
func.func @held(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %f = stablehlo.sine %x {recompute.id = 0} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %e = stablehlo.exponential %f : tensor<4xf32> loc("jit(f)/jvp(b)/exp")
  %h = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(c)/sin")
  %g1 = stablehlo.multiply %ct, %h : tensor<4xf32> loc("jit(f)/transpose(jvp(c))/mul")
  %c = stablehlo.sine %x {recompute.id = 0, recompute.copy = 1, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/sin")
  %g2 = stablehlo.multiply %g1, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  %g3 = stablehlo.multiply %g2, %e : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %g3 : tensor<4xf32>
}
// CHECK-LABEL: func.func @held
// CHECK-NEXT:    %f = stablehlo.sine
// CHECK-NEXT:    %e = stablehlo.exponential %f
// CHECK-NEXT:    %h = stablehlo.sine
// CHECK-NEXT:    %g1 = stablehlo.multiply %ct, %h

// If only the forward pass reads the twin, the two operations are merged, and the original keeps its id.
func.func @not_held(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %h = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(c)/sin")
  %f = stablehlo.sine %x {recompute.id = 0} : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %e = stablehlo.add %f, %h : tensor<4xf32> loc("jit(f)/jvp(b)/add")
  %c = stablehlo.sine %x {recompute.id = 0, recompute.copy = 1, recompute.duplicated} : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/sin")
  %g1 = stablehlo.multiply %ct, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  %g2 = stablehlo.multiply %g1, %e : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %g2 : tensor<4xf32>
}
// CHECK-LABEL: func.func @not_held
// CHECK-NEXT:    %h = stablehlo.sine %x {recompute.id = 0
// CHECK-NEXT:    %e = stablehlo.add %h, %h

// Operations that CSE never merges need no phase.
func.func @unknown(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %f = "test.unknown"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/jvp(b)/unknown")
  %g = "test.unknown"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/transpose(jvp(b))/unknown")
  func.return %f, %g : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @unknown
// CHECK-NEXT:    %f = "test.unknown"(%x) :
// CHECK-NEXT:    %g = "test.unknown"(%x) :
