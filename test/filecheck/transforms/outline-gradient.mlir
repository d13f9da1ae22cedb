// RUN: recompute-opt %s -p recompute-outline-gradient | filecheck %s
// RUN: recompute-opt %s > %t.flat
// RUN: recompute-opt %s -p recompute-outline-gradient,recompute-inline-gradient > %t.again
// RUN: diff %t.flat %t.again
// RUN: recompute-opt %s -p recompute-outline-gradient > %t.structured
// RUN: recompute-opt %t.structured -p recompute-inline-gradient,recompute-outline-gradient > %t.structured.again
// RUN: diff %t.structured %t.structured.again

// Consecutive gradient operations form one segment, with tokens and copies; the segment states the phase.
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.id = 0 : i64}
// CHECK-NEXT:    %h = recompute.gradient {
// CHECK-NEXT:      %g = stablehlo.negate %ct :
// CHECK-NEXT:      %t = recompute.token %g : tensor<4xf32>
// CHECK-NEXT:      %d = recompute.depend %x after %t : tensor<4xf32>
// CHECK-NEXT:      %c = stablehlo.sine %d {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated}
// CHECK-NEXT:      [[H:%\w+]] = stablehlo.multiply %g, %c :
// CHECK-NEXT:      recompute.yield [[H]] : tensor<4xf32>
// CHECK-NEXT:    } : tensor<4xf32>
// CHECK-NEXT:    %u = stablehlo.subtract %x, %h
func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x {recompute.id = 0 : i64} : tensor<4xf32>
  %g = stablehlo.negate %ct {recompute.phase = "gradient"} : tensor<4xf32>
  %t = recompute.token %g {recompute.phase = "gradient"} : tensor<4xf32>
  %d = recompute.depend %x after %t {recompute.phase = "gradient"} : tensor<4xf32>
  %c = stablehlo.sine %d {recompute.id = 0 : i64, recompute.copy = 1 : i64, recompute.duplicated, recompute.phase = "gradient"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %c {recompute.phase = "gradient"} : tensor<4xf32>
  %u = stablehlo.subtract %x, %h : tensor<4xf32>
  func.return %a, %u : tensor<4xf32>, tensor<4xf32>
}

// Two forward passes with their gradients become two gradient regions. A value of the first region that both read is
// passed on as a result.
// CHECK-LABEL: func.func @two_steps
// CHECK:         %g = recompute.gradient {
// CHECK:         } : tensor<4xf32>
// CHECK-NEXT:    %b = stablehlo.sine %g {recompute.phase = "primal"}
// CHECK-NEXT:    %h = recompute.gradient {
// CHECK-NEXT:      [[H:%\w+]] = stablehlo.multiply %g, %b :
func.func @two_steps(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x {recompute.phase = "primal"} : tensor<4xf32>
  %g = stablehlo.multiply %ct, %a {recompute.phase = "gradient"} : tensor<4xf32>
  %b = stablehlo.sine %g {recompute.phase = "primal"} : tensor<4xf32>
  %h = stablehlo.multiply %g, %b {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %h : tensor<4xf32>
}
