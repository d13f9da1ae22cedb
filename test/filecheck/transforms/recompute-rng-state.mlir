// RUN: recompute-opt %s -p recompute --remarks=text 2>&1 >/dev/null | filecheck %s --check-prefix=KEPT
// RUN: not recompute-opt %s -p 'recompute{preserve-rng-state=false}' 2>&1 >/dev/null | filecheck %s --check-prefix=REFUSED
// RUN: recompute-opt %s -p 'recompute{preserve-rng-state=false}' --no-proof | filecheck %s
// RUN: recompute-opt --help-pass recompute | filecheck %s --check-prefix=HELP

// A copy of an operation with a hidden state draws different numbers: the proof refuses it, and says why.

// KEPT: stablehlo.rng is not recomputed
// REFUSED: nothing is written: the result is not proved equal to the input: {{.*}} (preserve-rng-state is false: copies of stablehlo.rng draw different numbers) (--no-proof writes it anyway)
// HELP: preserve-rng-state
// HELP-SAME: The proof rejects such a result, so it is written only with `--no-proof`

// CHECK-LABEL: func.func @step
// CHECK-COUNT-2: stablehlo.rng
func.func @step(%low: tensor<f32>, %x: tensor<1024xf32>, %ct: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<1024> : tensor<1xi64>
  %r = stablehlo.rng %low, %high, %shape, distribution = UNIFORM {recompute.recompute = true, recompute.segment = "a"} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<1024xf32>
  %s = stablehlo.add %r, %x {recompute.segment = "a"} : tensor<1024xf32>
  %a = stablehlo.multiply %x, %s : tensor<1024xf32>
  %b = stablehlo.sine %a : tensor<1024xf32>
  %c = stablehlo.tanh %b : tensor<1024xf32>
  %d = stablehlo.sine %c : tensor<1024xf32>
  %g0 = stablehlo.multiply %ct, %d {recompute.phase = "gradient"} : tensor<1024xf32>
  %g1 = stablehlo.multiply %g0, %r {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %d, %g1 : tensor<1024xf32>, tensor<1024xf32>
}
