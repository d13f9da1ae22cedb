// A segment that contains a loop and a branch: scf.for applies a damped sine three times, and scf.if selects the damping.
//
//   u = k sin(... k sin(x)), with k = 1/2 (flag) or 1/4;  w0 = u^2;  w1 = sin w0, ..., w6 = sin w5, the result
//
// The gradient is hand-written: the loop also carries its derivative. `recompute.segment` and `recompute.recompute` select the recomputed operations. Run it:
//
//   recompute-opt loop.mlir -p 'recompute{target=none}'
!t = tensor<256xf32>

func.func @step(%x: !t, %flag: i1, %ct: !t) -> (!t, !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 3 : index
  %ones = arith.constant dense<1.0> : !t
  %half = arith.constant dense<0.5> : !t
  %quarter = arith.constant dense<0.25> : !t

  // The chain and its derivative, computed in one loop: u' = k sin(u), d' = k cos(u) d.
  %k = scf.if %flag -> (!t) {
    scf.yield %half : !t
  } else {
    scf.yield %quarter : !t
  } {recompute.segment = "chain", recompute.recompute = true}
  %u, %d = scf.for %i = %c0 to %n step %c1 iter_args(%ui = %x, %di = %ones) -> (!t, !t) {
    %s = math.sin %ui : !t
    %c = math.cos %ui : !t
    %un = arith.mulf %k, %s : !t
    %kc = arith.mulf %k, %c : !t
    %dn = arith.mulf %kc, %di : !t
    scf.yield %un, %dn : !t, !t
  } {recompute.segment = "chain", recompute.recompute = true}
  %w0 = arith.mulf %u, %u {recompute.segment = "chain"} : !t

  // The rest of the model: six sines, whose slopes are residuals.
  %w1 = math.sin %w0 : !t
  %c10 = math.cos %w0 : !t
  %w2 = math.sin %w1 : !t
  %c11 = math.cos %w1 : !t
  %w3 = math.sin %w2 : !t
  %c12 = math.cos %w2 : !t
  %w4 = math.sin %w3 : !t
  %c13 = math.cos %w3 : !t
  %w5 = math.sin %w4 : !t
  %c14 = math.cos %w4 : !t
  %w6 = math.sin %w5 : !t
  %c15 = math.cos %w5 : !t

  // dy/dx = cos w5 ... cos w0 * 2 u * d
  %g5 = arith.mulf %ct, %c15 {recompute.phase = "gradient"} : !t
  %g4 = arith.mulf %g5, %c14 {recompute.phase = "gradient"} : !t
  %g3 = arith.mulf %g4, %c13 {recompute.phase = "gradient"} : !t
  %g2 = arith.mulf %g3, %c12 {recompute.phase = "gradient"} : !t
  %g1 = arith.mulf %g2, %c11 {recompute.phase = "gradient"} : !t
  %g0 = arith.mulf %g1, %c10 {recompute.phase = "gradient"} : !t
  %gu0 = arith.mulf %g0, %u {recompute.phase = "gradient"} : !t
  %gu = arith.addf %gu0, %gu0 {recompute.phase = "gradient"} : !t
  %gx = arith.mulf %gu, %d {recompute.phase = "gradient"} : !t
  func.return %w6, %gx : !t, !t
}
