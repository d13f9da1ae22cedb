// RUN: recompute-opt %s -p recompute 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{attempts=1}' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-mark,recompute-clone,recompute-cse,recompute-verify,recompute-lower,recompute-verify' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p recompute-phase | filecheck %s --check-prefix=PHASE

// The body of a loop that accumulates gradients is a step of its own, with a forward pass and its gradient. It
// reads the weights from outside the loop.

// CHECK-LABEL: func.func @accumulated
// CHECK:         stablehlo.while
// CHECK:           [[A:%\w+]] = stablehlo.sine %x
// CHECK:           optimization_barrier
// CHECK-NEXT:      stablehlo.{{.*}}recompute.segment = "{{.*}}block0"{{.*}}recompute.duplicated
// CHECK:           stablehlo.return

// PHASE:         stablehlo.sine %x {recompute.phase = "primal"}
// PHASE:         stablehlo.multiply %ct, %f {recompute.phase = "gradient"}
// PHASE:         stablehlo.add %sum, %h {recompute.phase = "update"}

func.func @accumulated(%w: tensor<1024xf32>, %n: tensor<i32>, %zero: tensor<1024xf32>) -> tensor<1024xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %r:3 = stablehlo.while(%i = %c0, %x = %w, %sum = %zero) : tensor<i32>, tensor<1024xf32>, tensor<1024xf32>
  cond {
    %go = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/while/body/jvp(block0)/sin")
    %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/while/body/jvp(block0)/exp")
    %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/while/body/jvp(block0)/tanh")
    %d = stablehlo.exponential %c : tensor<1024xf32> loc("jit(f)/while/body/jvp(block1)/exp")
    %e = stablehlo.sine %d : tensor<1024xf32> loc("jit(f)/while/body/jvp(block1)/sin")
    %f = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/while/body/jvp(block1)/tanh")
    %ct = stablehlo.multiply %f, %w : tensor<1024xf32> loc("jit(f)/while/body/transpose(jvp(block1))/mul")
    %g = stablehlo.multiply %ct, %f : tensor<1024xf32> loc("jit(f)/while/body/transpose(jvp(block1))/mul")
    %g1 = stablehlo.multiply %g, %d : tensor<1024xf32> loc("jit(f)/while/body/transpose(jvp(block1))/mul")
    %g2 = stablehlo.multiply %g1, %b : tensor<1024xf32> loc("jit(f)/while/body/transpose(jvp(block0))/mul")
    %h = stablehlo.multiply %g2, %a : tensor<1024xf32> loc("jit(f)/while/body/transpose(jvp(block0))/mul")
    %more = stablehlo.add %sum, %h : tensor<1024xf32> loc("jit(f)/while/body/add")
    %next = stablehlo.add %i, %c1 : tensor<i32> loc("jit(f)/while/body/add")
    stablehlo.return %next, %x, %more : tensor<i32>, tensor<1024xf32>, tensor<1024xf32>
  }
  func.return %r#2 : tensor<1024xf32>
}
