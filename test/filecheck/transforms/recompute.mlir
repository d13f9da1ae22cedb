// RUN: recompute-opt %s -p recompute 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p recompute --print-debuginfo 2>/dev/null | recompute-opt -p recompute --print-debuginfo 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segments=block0 target=none}' | filecheck %s --check-prefix=NONE

// RUN: recompute-opt %s -p 'recompute{calls=false}' 2>/dev/null | filecheck %s --check-prefix=FLAT

// The whole pipeline; a second run changes nothing. No operation of the dialect is left, and calls are restored.
func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = func.call @sine(%x) : (tensor<1024xf32>) -> tensor<1024xf32> loc("jit(f)/jvp(block0)/jit(sine)")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
func.func private @sine(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = stablehlo.sine %x : tensor<1024xf32> loc("sin")
  func.return %0 : tensor<1024xf32>
}
// CHECK-LABEL: func.func @step
// CHECK:         func.call @sine(%x)
// CHECK:         [[G:%\w+]] = stablehlo.multiply
// CHECK-NEXT:    [[X:%\w+]], [[GATE:%\w+]] = stablehlo.optimization_barrier %x, [[G]]
// CHECK-NEXT:    [[A:%\w+]] = func.call @sine([[X]]) {{{.*}}recompute.copy = 1 : i64
// CHECK-NEXT:    [[B:%\w+]] = stablehlo.exponential [[A]] {{{.*}}recompute.copy = 1 : i64
// CHECK-NEXT:    [[H:%\w+]] = stablehlo.multiply [[GATE]], [[B]]
// CHECK-NEXT:    stablehlo.multiply [[H]], [[A]]
// CHECK-NOT:     stablehlo.optimization_barrier
// CHECK-NOT:     recompute.token
// CHECK:       func.func private @sine

// FLAT-NOT:    @sine
// FLAT:        stablehlo.sine {{.*}}recompute.copy = 1 : i64
// FLAT-NOT:    @sine

// NONE-LABEL: func.func @step
// NONE:         func.call @sine(%x) {{.*}}recompute.duplicated
// NONE-NOT:     optimization_barrier
