// RUN: recompute-opt %s -p recompute --verify-diagnostics

// If no division has anything to recompute, the remark names the first one, and what to do.

// expected-remark@+3 {{none of the tried divisions into segments frees memory (the first is all as one segment); to recompute an operation anyway, give it the attribute recompute.recompute = true}}
// expected-remark@+2 {{nothing is recomputed: the step is left as it is}}
// expected-remark@+2 {{segment 'segment0' is not recomputed: the backward pass begins with these values, so recomputing them would free nothing}}
func.func @short(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.exponential %x : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %1 = stablehlo.sine %0 : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %2 = stablehlo.exponential %1 : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %3 = stablehlo.multiply %ct, %2 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %3 : tensor<64xf32>
}
