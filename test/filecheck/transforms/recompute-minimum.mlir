// RUN: recompute-opt %s -p 'recompute{primal-results=0 budget=min memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=LEAST
// RUN: recompute-opt %s -p 'recompute{primal-results=0 budget=50% memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=HALF
// RUN: not recompute-opt %s -p 'recompute{primal-results=0 budget=30% memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=REFUSED

// In program order, `min` needs no more memory than any budget reaches. A refusal states the same minimum.

// LEAST: remark: budget min: 1.0 MiB -> 384.0 KiB at the peak in program order; 15 operations are recomputed
// HALF: remark: budget of 50% (512.0 KiB of temporaries): 1.0 MiB -> 512.0 KiB at the peak in program order; 5 operations are recomputed, 163840 FLOPs more
// REFUSED: error: no plan is within the budget of 30% (307.2 KiB of 1.0 MiB of temporaries) in program order: no plan needs less than 384.0 KiB (393216 bytes), which are live while {{.*}}

func.func @step(%x: tensor<32768xf32>) -> (tensor<f32>, tensor<32768xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a0 = stablehlo.sine %x : tensor<32768xf32>
  %a1 = stablehlo.exponential %a0 : tensor<32768xf32>
  %a2 = stablehlo.tanh %a1 : tensor<32768xf32>
  %a3 = stablehlo.sine %a2 : tensor<32768xf32>
  %a4 = stablehlo.exponential %a3 : tensor<32768xf32>
  %a5 = stablehlo.tanh %a4 : tensor<32768xf32>
  %a6 = stablehlo.sine %a5 : tensor<32768xf32>
  %loss = stablehlo.reduce(%a6 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<32768xf32>, tensor<f32>) -> tensor<f32>
  %g6 = stablehlo.multiply %a6, %a5 : tensor<32768xf32>
  %g5 = stablehlo.multiply %g6, %a4 : tensor<32768xf32>
  %g4 = stablehlo.multiply %g5, %a3 : tensor<32768xf32>
  %g3 = stablehlo.multiply %g4, %a2 : tensor<32768xf32>
  %g2 = stablehlo.multiply %g3, %a1 : tensor<32768xf32>
  %g1 = stablehlo.multiply %g2, %a0 : tensor<32768xf32>
  %g0 = stablehlo.multiply %g1, %x : tensor<32768xf32>
  func.return %loss, %g0 : tensor<f32>, tensor<32768xf32>
}
