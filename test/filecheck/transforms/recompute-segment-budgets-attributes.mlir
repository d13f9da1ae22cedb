// RUN: recompute-opt %s -p 'recompute{segment-budgets="block0:min"}' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-mark{segment-budgets="block0:min"},recompute-clone' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segments=block0}' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segments=none}' 2>/dev/null | filecheck %s --check-prefix=BOTH
// RUN: not recompute-opt %s -p 'recompute{segments=blokc*}' 2>&1 | filecheck %s --check-prefix=SIMILAR
// RUN: not recompute-opt %s -p 'recompute{segment-budgets="blokc*:50%"}' 2>&1 | filecheck %s --check-prefix=SIMILAR

// If segment budgets are given without segments, all other segments stay unchanged, also those that attributes define.
// With segments=none, a segment attribute is a mark. An error
// for a pattern without a match names the segments that attributes define.

// CHECK:          stablehlo.exponential %d
// CHECK-COUNT-2:  {recompute.segment = "block0"{{.*}}recompute.duplicated
// CHECK-NOT:      recompute.duplicated

// BOTH-COUNT-2:   {recompute.segment = "block1"{{.*}}recompute.duplicated
// BOTH-COUNT-2:   {recompute.segment = "block0"{{.*}}recompute.duplicated

// SIMILAR:        no segment matches 'blokc*'; similar segments are: block0, block1

func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x {recompute.segment = "block0", recompute.phase = "primal"} : tensor<1024xf32>
  %b = stablehlo.exponential %a {recompute.segment = "block0", recompute.phase = "primal"} : tensor<1024xf32>
  %c = stablehlo.tanh %b {recompute.segment = "block0", recompute.phase = "primal"} : tensor<1024xf32>
  %d = stablehlo.sine %c {recompute.segment = "block1", recompute.phase = "primal"} : tensor<1024xf32>
  %e = stablehlo.exponential %d {recompute.segment = "block1", recompute.phase = "primal"} : tensor<1024xf32>
  %f = stablehlo.tanh %e {recompute.segment = "block1", recompute.phase = "primal"} : tensor<1024xf32>
  %y = stablehlo.tanh %f {recompute.phase = "primal"} : tensor<1024xf32>
  %g0 = stablehlo.multiply %f, %f {recompute.phase = "gradient"} : tensor<1024xf32>
  %g = stablehlo.multiply %e, %g0 {recompute.phase = "gradient"} : tensor<1024xf32>
  %h = stablehlo.multiply %g, %d {recompute.phase = "gradient"} : tensor<1024xf32>
  %i = stablehlo.multiply %h, %b {recompute.phase = "gradient"} : tensor<1024xf32>
  %j = stablehlo.multiply %i, %a {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %y, %j : tensor<1024xf32>, tensor<1024xf32>
}
