// RUN: recompute-opt %s -p recompute-take-scopes --print-debuginfo --split-input-file | filecheck %s

// An operation belongs to the outermost segment, with the switches of the innermost one. The backward pass stays
// unmarked.
func.func public @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(recompute:block@3)/sin")
  %1 = stablehlo.tanh %0 : tensor<4xf32> loc("jit(f)/jvp(recompute:block@3)/recompute:inner@4/tanh")
  %2 = stablehlo.exponential %1 : tensor<4xf32> loc("jit(f)/jvp(recompute:block@3)/recompute:inner@4/recompute.save:exp@5/exp")
  %3 = stablehlo.cosine %2 : tensor<4xf32> loc("jit(f)/jvp(recompute:block@3)/recompute.save:off@6/recompute.again:cos@7/cos")
  %4 = stablehlo.negate %3 : tensor<4xf32> loc("jit(f)/jvp(other)/neg")
  %5 = stablehlo.multiply %4, %0 : tensor<4xf32> loc("jit(f)/transpose(jvp(recompute:block@3))/mul")
  func.return %5 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @nested
// CHECK-NEXT:    stablehlo.sine %x {recompute.segment = "block"} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.tanh %{{.*}} {recompute.segment = "block"} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.exponential %{{.*}} {recompute.recompute = false, recompute.segment = "block"} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.cosine %{{.*}} {recompute.recompute = "must_recompute", recompute.segment = "block"} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.negate %{{\S+}} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.multiply %{{\S+}}, %{{\S+}} : tensor<4xf32>

// -----

// Calls are numbered in program order, whatever numbers their scopes have; outputs are recomputed where the scope
// requests it.
func.func public @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(recompute:block@9+output_recompute)/sin")
  %1 = stablehlo.sine %0 : tensor<4xf32> loc("jit(f)/jvp(recompute:block@2)/sin")
  %2 = stablehlo.sine %1 : tensor<4xf32> loc("jit(f)/jvp(recompute.again:sin@1)/sin")
  %3 = stablehlo.sine %2 {recompute.segment = "own", recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp(recompute.save:sin@5)/sin")
  func.return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @calls
// CHECK-NEXT:    stablehlo.sine %x {recompute.segment = "block", recompute.recompute = true} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.sine %{{.*}} {recompute.segment = "block#1"} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.sine %{{.*}} {recompute.recompute = "must_recompute", recompute.segment = "sin"} : tensor<4xf32>
// CHECK-NEXT:    stablehlo.sine %{{.*}} {recompute.segment = "own", recompute.recompute = true} : tensor<4xf32>

// -----

// A function that is called twice in one scope makes two segments.
func.func public @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(recompute:block@0)/sin")
  %1 = stablehlo.tanh %0 : tensor<4xf32> loc("jit(f)/jvp(recompute:block@0)/tanh")
  %2 = stablehlo.sine %1 : tensor<4xf32> loc("jit(f)/jvp(recompute:block@0)/sin")
  %3 = stablehlo.tanh %2 : tensor<4xf32> loc("jit(f)/jvp(recompute:block@0)/tanh")
  func.return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @twice
// CHECK-NEXT:    stablehlo.sine %x {recompute.segment = "block"}
// CHECK-NEXT:    stablehlo.tanh %{{.*}} {recompute.segment = "block"}
// CHECK-NEXT:    stablehlo.sine %{{.*}} {recompute.segment = "block#1"}
// CHECK-NEXT:    stablehlo.tanh %{{.*}} {recompute.segment = "block#1"}

// -----

// Collectives of tensors may be repeated, but not those that gather a parameter. A conditional is in the segment of its
// branches.
func.func public @switches(%w: tensor<4xf32>, %p: tensor<i1>) -> tensor<8xf32> {
  %c = stablehlo.convert %w : (tensor<4xf32>) -> tensor<4xbf16> loc("jit(f)/jvp(recompute:block@0)/convert")
  %g = "stablehlo.all_gather"(%c) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xbf16>) -> tensor<8xbf16> loc("jit(f)/jvp(recompute:block@0)/all_gather")
  %d = stablehlo.convert %g : (tensor<8xbf16>) -> tensor<8xf32> loc("jit(f)/jvp(recompute:block@0)/convert")
  %r = "stablehlo.all_reduce"(%d) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %m: tensor<f32>):
    %s = stablehlo.add %l, %m : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(f)/jvp(recompute:block@0)/psum")
  %t = "stablehlo.if"(%p) ({
    %y = stablehlo.add %r, %d : tensor<8xf32> loc("jit(f)/jvp()/cond/recompute:branch@7/add")
    stablehlo.return %y : tensor<8xf32>
  }, {
    stablehlo.return %r : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32> loc("jit(f)/jvp()/cond")
  func.return %t : tensor<8xf32>
}
// CHECK-LABEL: func.func public @switches
// CHECK-NEXT:    stablehlo.convert %w {recompute.segment = "block"}
// CHECK-NEXT:    stablehlo.all_gather
// CHECK-SAME:    recompute.recompute = false
// CHECK-NEXT:    stablehlo.convert
// CHECK-NEXT:    stablehlo.all_reduce
// CHECK:         recompute.repeatable
// CHECK:         stablehlo.if
// CHECK:         recompute.segment = "branch"
