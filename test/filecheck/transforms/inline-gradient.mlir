// RUN: recompute-opt %s -p recompute-inline-gradient | filecheck %s
// RUN: recompute-opt %s -p recompute-inline-gradient,recompute-phase | filecheck %s --check-prefix=PHASE

// The segment's operations are marked as gradient operations; forward operations before it stay unmarked.
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %a = stablehlo.sine %x :
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %a {recompute.phase = "gradient"}
// CHECK-NEXT:    %h = stablehlo.add %g, %ct {recompute.phase = "gradient"}
// CHECK-NEXT:    %u = stablehlo.subtract %x, %h :
// CHECK-NEXT:    func.return %a, %u
func.func @step(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = stablehlo.sine %x : tensor<4xf32>
  %h = recompute.gradient {
    %g = stablehlo.multiply %ct, %a : tensor<4xf32>
    %h = stablehlo.add %g, %ct : tensor<4xf32>
    recompute.yield %h : tensor<4xf32>
  } : tensor<4xf32>
  %u = stablehlo.subtract %x, %h : tensor<4xf32>
  func.return %a, %u : tensor<4xf32>, tensor<4xf32>
}

// For one gradient in two parts no further phases are written, since the constant between the parts may run anywhere.
// CHECK-LABEL: func.func @pieces
// CHECK-NEXT:    %a = stablehlo.sine %x :
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %a {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.constant dense<2.{{0*e?.*}}> :
// CHECK-NEXT:    %h = stablehlo.multiply %g, %k {recompute.phase = "gradient"}
// PHASE-LABEL: func.func @pieces
// PHASE:         stablehlo.constant {recompute.phase = "gradient"}
func.func @pieces(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  %g = recompute.gradient {
    %g = stablehlo.multiply %ct, %a : tensor<4xf32>
    recompute.yield %g : tensor<4xf32>
  } : tensor<4xf32>
  %k = stablehlo.constant dense<2.0> : tensor<4xf32>
  %h = recompute.gradient {
    %h = stablehlo.multiply %g, %k : tensor<4xf32>
    recompute.yield %h : tensor<4xf32>
  } : tensor<4xf32>
  func.return %h : tensor<4xf32>
}

// Forward, gradient, forward, gradient: every operation gets its phase, since its position does not determine it.
// CHECK-LABEL: func.func @two_steps
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.phase = "primal"}
// CHECK-NEXT:    %g = stablehlo.multiply %ct, %a {recompute.phase = "gradient"}
// CHECK-NEXT:    %v = stablehlo.subtract %x, %g {recompute.phase = "primal"}
// CHECK-NEXT:    %b = stablehlo.sine %v {recompute.phase = "primal"}
// CHECK-NEXT:    %h = stablehlo.multiply %ct, %b {recompute.phase = "gradient"}
// CHECK-NEXT:    %w = stablehlo.subtract %v, %h {recompute.phase = "update"}
// PHASE-LABEL: func.func @two_steps
// PHASE:         %b = stablehlo.sine %v {recompute.phase = "primal"}
func.func @two_steps(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  %g = recompute.gradient {
    %g = stablehlo.multiply %ct, %a : tensor<4xf32>
    recompute.yield %g : tensor<4xf32>
  } : tensor<4xf32>
  %v = stablehlo.subtract %x, %g : tensor<4xf32>
  %b = stablehlo.sine %v : tensor<4xf32>
  %h = recompute.gradient {
    %h = stablehlo.multiply %ct, %b : tensor<4xf32>
    recompute.yield %h : tensor<4xf32>
  } : tensor<4xf32>
  %w = stablehlo.subtract %v, %h : tensor<4xf32>
  func.return %w : tensor<4xf32>
}
