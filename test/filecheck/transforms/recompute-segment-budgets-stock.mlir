// RUN: xdsl-opt %s -p 'recompute{segment-budgets="block0:50%"}' 2>/dev/null | filecheck %s
// RUN: xdsl-opt %s -p 'recompute{segment-budgets="block0:50%,block1:8KiB"}' 2>/dev/null | filecheck %s
// RUN: xdsl-opt %s -p 'recompute-plan{segment-budgets="block0:50%","block1:8KiB"}' 2>/dev/null | filecheck %s --check-prefix=MARKS

// Stock xdsl-opt accepts the option in quotes. Segments may be given by attributes as well as by locations.

// CHECK:     %b = stablehlo.exponential %a {{.*}}recompute.recompute = true
// CHECK:     stablehlo.exponential {{.*}}recompute.duplicated
// CHECK-NOT: recompute.duplicated
// MARKS:     %b = stablehlo.exponential %a {{.*}}recompute.recompute = true
// MARKS-NOT: recompute.duplicated

func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x {recompute.phase = "primal", recompute.segment = "block0"} : tensor<1024xf32>
  %b = stablehlo.exponential %a {recompute.phase = "primal", recompute.segment = "block0"} : tensor<1024xf32>
  %c = stablehlo.tanh %b {recompute.phase = "primal", recompute.segment = "block0"} : tensor<1024xf32>
  %d = stablehlo.sine %c {recompute.phase = "primal", recompute.segment = "block1"} : tensor<1024xf32>
  %e = stablehlo.exponential %d {recompute.phase = "primal", recompute.segment = "block1"} : tensor<1024xf32>
  %y = stablehlo.tanh %e {recompute.phase = "primal", recompute.segment = "block1"} : tensor<1024xf32>
  %g = stablehlo.multiply %e, %d {recompute.phase = "gradient"} : tensor<1024xf32>
  %h = stablehlo.multiply %g, %b {recompute.phase = "gradient"} : tensor<1024xf32>
  %i = stablehlo.multiply %h, %a {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
