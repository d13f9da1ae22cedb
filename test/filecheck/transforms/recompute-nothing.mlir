// RUN: recompute-opt %s -p recompute --verify-diagnostics

// A division in which no segment is recomputed is not remarked as a choice.

// expected-remark@+3 {{all as one segment: the only attempt recomputes nothing}}
// expected-remark@+2 {{nothing is recomputed: the step is left as it is}}
// expected-remark@+2 {{segment 'segment0' is not recomputed: the backward pass begins with these values, so recomputing them would free nothing}}
func.func @short(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.exponential %x : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %1 = stablehlo.sine %0 : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %2 = stablehlo.exponential %1 : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %3 = stablehlo.multiply %ct, %2 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %3 : tensor<64xf32>
}
