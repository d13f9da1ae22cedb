// RUN: recompute-opt %s -p recompute 2>&1 >/dev/null | filecheck %s --check-prefix=DEFAULT
// RUN: recompute-opt %s -p 'recompute{budget=90% memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=ORDER
// RUN: recompute-opt %s -p 'recompute{target=none}' 2>&1 >/dev/null | filecheck %s --check-prefix=NONE --allow-empty
// RUN: sed 's/math.tanh/stablehlo.tanh/' %s | recompute-opt - -p recompute 2>&1 >/dev/null | filecheck %s --check-prefix=NONE --allow-empty

// A module without StableHLO is probably not for XLA: a remark proposes the target for executors in program order.

// DEFAULT:     remark: the module contains no StableHLO, but the target stablehlo counts memory by the XLA:CPU model and delays copies by stablehlo.optimization_barrier; for an executor that runs operations in program order, use target=none
// DEFAULT-NOT: contains no StableHLO
// ORDER:       remark: the module contains no StableHLO, but the target stablehlo delays copies by stablehlo.optimization_barrier; for an executor
// NONE-NOT:    contains no StableHLO

func.func @step(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = math.tanh %x {recompute.phase = "primal"} : tensor<64x64xf32>
  %b = math.sin %a {recompute.phase = "primal"} : tensor<64x64xf32>
  %c = math.exp %b {recompute.phase = "primal"} : tensor<64x64xf32>
  %y = math.sin %c {recompute.phase = "primal"} : tensor<64x64xf32>
  %g = arith.mulf %c, %y {recompute.phase = "gradient"} : tensor<64x64xf32>
  %h = arith.mulf %g, %b {recompute.phase = "gradient"} : tensor<64x64xf32>
  %i = arith.mulf %h, %a {recompute.phase = "gradient"} : tensor<64x64xf32>
  func.return %y, %i : tensor<64x64xf32>, tensor<64x64xf32>
}
