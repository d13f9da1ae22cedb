// RUN: recompute-opt %s -p 'recompute{primal-results=0}' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-phase{primal-results=0}' | filecheck %s --check-prefix=PHASE
// RUN: recompute-opt %s -p 'recompute-phase{cotangents=1}' | filecheck %s --check-prefix=PHASE
// RUN: recompute-opt %s -p recompute 2>&1 | filecheck %s --check-prefix=SILENT
// RUN: recompute-opt %s -t explain 2>&1 | filecheck %s --check-prefixes=SILENT,EXPLAIN
// RUN: recompute-opt %s -t 'explain{primal-results=0}' 2>&1 | filecheck %s --check-prefixes=STATED,EXPLAIN
// RUN: not recompute-opt %s -p 'recompute{primal-results=2}' 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: not recompute-opt %s -p 'recompute{primal-results=1 cotangents=1}' 2>&1 | filecheck %s --check-prefix=NEEDS

// Locations give no phases, as in the output of another compiler. The loss is result 0: its producers are primal, other
// operations before it residual, and those after it gradient.

// SILENT: remark: a guess: the phase of no operation is known and no result looks like a loss
// EXPLAIN: function @silent
// STATED-NOT: guess
// NUMBER: error: primal-results=2 is out of range: the function has 2 results, numbered from 0
// NEEDS:  error: a primal result depends on the gradient operation stablehlo.multiply

// CHECK-LABEL: func.func @silent
// CHECK:         optimization_barrier
// CHECK-NEXT:    recompute.duplicated

// PHASE:      %0 = stablehlo.tanh %x {recompute.phase = "primal"}
// PHASE-NEXT: %m = stablehlo.multiply %0, %0 {recompute.phase = "residual"}
// PHASE:      %8 = stablehlo.tanh %7 {recompute.phase = "primal"}
// PHASE-NEXT: %g7 = stablehlo.multiply %ct, %8 {recompute.phase = "gradient"}
// PHASE:      %g0 = {{.*}}recompute.phase = "gradient"
// PHASE-NEXT: %u = stablehlo.subtract %x, %g0 {recompute.phase = "update"}

func.func @silent(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = stablehlo.tanh %x : tensor<64xf32>
  %m = stablehlo.multiply %0, %0 : tensor<64xf32>
  %1 = stablehlo.sine %0 : tensor<64xf32>
  %2 = stablehlo.tanh %1 : tensor<64xf32>
  %3 = stablehlo.sine %2 : tensor<64xf32>
  %4 = stablehlo.tanh %3 : tensor<64xf32>
  %5 = stablehlo.sine %4 : tensor<64xf32>
  %6 = stablehlo.tanh %5 : tensor<64xf32>
  %7 = stablehlo.sine %6 : tensor<64xf32>
  %8 = stablehlo.tanh %7 : tensor<64xf32>
  %g7 = stablehlo.multiply %ct, %8 : tensor<64xf32>
  %g6 = stablehlo.multiply %g7, %6 : tensor<64xf32>
  %g5 = stablehlo.multiply %g6, %5 : tensor<64xf32>
  %g4 = stablehlo.multiply %g5, %4 : tensor<64xf32>
  %g3 = stablehlo.multiply %g4, %3 : tensor<64xf32>
  %g2 = stablehlo.multiply %g3, %2 : tensor<64xf32>
  %g1 = stablehlo.multiply %g2, %1 : tensor<64xf32>
  %g0 = stablehlo.multiply %g1, %m : tensor<64xf32>
  %u = stablehlo.subtract %x, %g0 : tensor<64xf32>
  func.return %8, %u : tensor<64xf32>, tensor<64xf32>
}
