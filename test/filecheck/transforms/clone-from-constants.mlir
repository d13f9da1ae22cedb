// RUN: recompute-opt %s -p recompute-clone | filecheck %s

// XLA folds neither loops nor random numbers. A copy of them that reads only constants would not wait for the gradient,
// and CSE would merge it with the original. It therefore reads its constants behind the token.

// CHECK-LABEL: func.func @drawn
// CHECK:         [[KEY:%\w+]] = stablehlo.constant
// CHECK:         [[TOKEN:%\w+]] = recompute.token %e
// CHECK:         recompute.depend [[KEY]] after [[TOKEN]]
// CHECK-NEXT:    stablehlo.rng_bit_generator {{%\w+}}, {{.*}}recompute.copy
// CHECK:         stablehlo.multiply %e
func.func @drawn(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %key = stablehlo.constant {recompute.phase = "primal"} dense<[1, 2]> : tensor<2xui64>
  %state, %bits = stablehlo.rng_bit_generator %key, algorithm = PHILOX {recompute.phase = "primal", recompute.recompute = true} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64xui32>)
  %mask = stablehlo.convert %bits {recompute.phase = "primal", recompute.recompute = true} : (tensor<64xui32>) -> tensor<64xf32>
  %h = stablehlo.multiply %x, %mask {recompute.phase = "primal"} : tensor<64xf32>
  %e = stablehlo.sine %ct {recompute.phase = "gradient"} : tensor<64xf32>
  %g = stablehlo.multiply %e, %mask {recompute.phase = "gradient"} : tensor<64xf32>
  return {recompute.phase = "update"} %h, %g : tensor<64xf32>, tensor<64xf32>
}

// A constant expression before the loop is copied with it, and only the constant waits.

// CHECK-LABEL: func.func @loop
// CHECK:         [[N:%\w+]] = stablehlo.constant {{.*}}dense<3.000000e+00>
// CHECK:         [[TOKEN2:%\w+]] = recompute.token %e
// CHECK:         [[D:%\w+]] = recompute.depend [[N]] after [[TOKEN2]]
// CHECK:         stablehlo.while({{.*}} = [[D]])
func.func @loop(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %n = stablehlo.constant {recompute.phase = "primal"} dense<3.0> : tensor<64xf32>
  %u = stablehlo.while(%p = %n) : tensor<64xf32> attributes {recompute.phase = "primal", recompute.recompute = true}
  cond {
    %c = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %a = stablehlo.sine %p : tensor<64xf32>
    stablehlo.return %a : tensor<64xf32>
  }
  %h = stablehlo.multiply %x, %u {recompute.phase = "primal"} : tensor<64xf32>
  %e = stablehlo.sine %ct {recompute.phase = "gradient"} : tensor<64xf32>
  %g = stablehlo.multiply %e, %u {recompute.phase = "gradient"} : tensor<64xf32>
  return {recompute.phase = "update"} %h, %g : tensor<64xf32>, tensor<64xf32>
}
