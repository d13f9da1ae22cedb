// RUN: recompute-opt %s -p 'recompute{segments=left*}' -o /dev/null --remarks=text 2>&1 | filecheck %s --check-prefix=LEFT
// RUN: recompute-opt %s -p 'recompute{segments=right*}' -o /dev/null --remarks=text 2>&1 | filecheck %s --check-prefix=RIGHT
// RUN: not recompute-opt %s -p 'recompute{segments=middle*}' 2>&1 >/dev/null | filecheck %s --check-prefix=NEITHER
// RUN: recompute-opt %s -p 'recompute{skip=0,1}' -o /dev/null 2>&1 | filecheck %s --check-prefix=SKIPPED
// RUN: recompute-opt %s -p 'recompute{segments=none}' -o /dev/null 2>&1 | filecheck %s --check-prefix=NONE

// In a function with two steps, a pattern that matches segments of one step is no error for the other. Remarks on the
// second step, which is outlined while the passes run, are reported at the function.

// LEFT:      segment 'left0' is recomputed
// LEFT-NOT:  segment 'right0'
// RIGHT:     segment 'right0' is recomputed
// NEITHER:   two-steps-in-a-function.mlir:17:1: error: no segment matches 'middle*'
// SKIPPED:   segments 'left0' and 'left1' are not recomputed: listed among the segments to skip
// SKIPPED:   segments 'right0' and 'right1' are not recomputed: listed among the segments to skip
// NONE:      two-steps-in-a-function.mlir:17:1: remark: no segments: segments=none selects only marked operations, and none is marked (2 times)
func.func @main(%x: tensor<1024xf32>, %z: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(left0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(left0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(left0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(left1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(left1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(left1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(left1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(left0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(left0))/mul")
  %a2 = stablehlo.sine %z : tensor<1024xf32> loc("jit(f)/jvp(right0)/sin")
  %b2 = stablehlo.exponential %a2 : tensor<1024xf32> loc("jit(f)/jvp(right0)/exp")
  %c2 = stablehlo.tanh %b2 : tensor<1024xf32> loc("jit(f)/jvp(right0)/tanh")
  %d2 = stablehlo.sine %c2 : tensor<1024xf32> loc("jit(f)/jvp(right1)/sin")
  %e2 = stablehlo.exponential %d2 : tensor<1024xf32> loc("jit(f)/jvp(right1)/exp")
  %y2 = stablehlo.tanh %e2 : tensor<1024xf32> loc("jit(f)/jvp(right1)/tanh")
  %g2 = stablehlo.multiply %e2, %d2 : tensor<1024xf32> loc("jit(f)/transpose(jvp(right1))/mul")
  %h2 = stablehlo.multiply %g2, %b2 : tensor<1024xf32> loc("jit(f)/transpose(jvp(right0))/mul")
  %i2 = stablehlo.multiply %h2, %a2 : tensor<1024xf32> loc("jit(f)/transpose(jvp(right0))/mul")
  func.return %y, %i, %y2, %i2 : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
