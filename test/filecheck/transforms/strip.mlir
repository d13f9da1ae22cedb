// RUN: recompute-opt %s -p recompute-strip 2>&1 | filecheck %s
// RUN: recompute-opt %s -p recompute,recompute-strip 2>/dev/null | filecheck %s --check-prefix=REWRITTEN
// RUN: recompute-opt %s -p recompute,recompute-strip,recompute-strip 2>/dev/null | filecheck %s --check-prefix=REWRITTEN

// The attributes that users and passes write are removed from operations, functions and regions. Others stay.
// CHECK-LABEL: func.func private @region
// CHECK-SAME:    attributes {other = 1 : i64}
// CHECK-NEXT:    "stablehlo.case"(%i) ({
// CHECK-NEXT:      stablehlo.sine %x {mhlo.other = "a"} : tensor<4xf32>
// CHECK:         }) : (tensor<i32>) -> tensor<4xf32>
// CHECK-NOT:     {recompute
func.func private @region(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> attributes {recompute.checkpoints = ["a"], other = 1 : i64} {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.sine %x {recompute.id = 1 : i64, recompute.segment = "block0", mhlo.other = "a"} : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) {recompute.name = "a"} : (tensor<i32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// After a rewrite, the copies and their barriers stay without attributes.
// REWRITTEN-LABEL: func.func @step
// REWRITTEN:         [[A:%\w+]] = stablehlo.sine %x : tensor<1024xf32>
// REWRITTEN:         stablehlo.exponential [[A]] : tensor<1024xf32>
// REWRITTEN:         stablehlo.optimization_barrier
// REWRITTEN-NEXT:    [[C:%\w+]] = stablehlo.sine {{%\w+}} : tensor<1024xf32>
// REWRITTEN-NEXT:    stablehlo.exponential [[C]] : tensor<1024xf32>
// REWRITTEN-NOT:     {recompute
func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x {recompute.segment = "block0", recompute.phase = "primal"} : tensor<1024xf32>
  %b = stablehlo.exponential %a {recompute.segment = "block0", recompute.phase = "primal"} : tensor<1024xf32>
  %c = stablehlo.tanh %b {recompute.segment = "block0", recompute.phase = "primal"} : tensor<1024xf32>
  %d = stablehlo.sine %c {recompute.segment = "block1", recompute.phase = "primal"} : tensor<1024xf32>
  %e = stablehlo.exponential %d {recompute.segment = "block1", recompute.phase = "primal"} : tensor<1024xf32>
  %y = stablehlo.tanh %e {recompute.segment = "block1", recompute.phase = "primal"} : tensor<1024xf32>
  %g = stablehlo.multiply %e, %d {recompute.phase = "gradient"} : tensor<1024xf32>
  %h = stablehlo.multiply %g, %b {recompute.phase = "gradient"} : tensor<1024xf32>
  %i = stablehlo.multiply %h, %a {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
