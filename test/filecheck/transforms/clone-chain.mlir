// RUN: recompute-opt %s -p recompute-clone | filecheck %s
// RUN: recompute-opt %s -p 'recompute-clone{chain=true}' | filecheck %s --check-prefix=CHAIN

// The copy of %a waits for the gradient that leads to its reader. In a chain it also waits for the preceding gradient.
// It does not wait for %k, which is computed from a constant and so available from the start.
func.func @chain(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<4xf32> loc("jit(f)/jvp()/sin")
  %d = stablehlo.negate %a : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %g0 = stablehlo.multiply %ct, %d : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %g1 = stablehlo.multiply %d, %g0 : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  %k = stablehlo.negate %one : tensor<4xf32> loc("jit(f)/transpose(jvp())/neg")
  %g2 = stablehlo.multiply %g0, %a : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %d, %g1, %g2, %k : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK: recompute.token %g0 :
// CHAIN: recompute.token %g0, %g1 :
