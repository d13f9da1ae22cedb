// RUN: recompute-opt %s -p recompute | filecheck %s

// The first block in a branch of a conditional is recomputed in the branch of its gradient, after the gradient of the
// second block. The forward conditional returns the input of the second block instead of the residuals of the first.
// The branch that does not compute these values returns zeros.

func.func @tower(%flag: tensor<i32>, %x: tensor<1024xf32>, %dy: tensor<1024xf32>)
    -> (tensor<1024xf32>, tensor<1024xf32>) {
  %fwd:5 = "stablehlo.case"(%flag) ({
    %zero = stablehlo.constant dense<0.0> : tensor<f32> loc("jit(step)/jvp()/cond/branch_0_fun/zero")
    %z = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_0_fun/zero")
    stablehlo.return %x, %z, %z, %z, %z : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32> loc("jit(step)/jvp()/cond")
  }, {
    %a0 = stablehlo.sine %x : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer0/sin")
    %r0 = stablehlo.cosine %x : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer0/cos")
    %b0 = stablehlo.tanh %a0 : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer0/tanh")
    %s0 = stablehlo.multiply %b0, %b0 : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer0/mul")
    %a1 = stablehlo.sine %b0 : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer1/sin")
    %r1 = stablehlo.cosine %b0 : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer1/cos")
    %b1 = stablehlo.tanh %a1 : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer1/tanh")
    %s1 = stablehlo.multiply %b1, %b1 : tensor<1024xf32> loc("jit(step)/jvp()/cond/branch_1_fun/layer1/mul")
    stablehlo.return %b1, %r0, %s0, %r1, %s1 : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32> loc("jit(step)/jvp()/cond")
  }) : (tensor<i32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) loc("jit(step)/jvp()/cond")
  %grad = "stablehlo.case"(%flag) ({
    stablehlo.return %dy : tensor<1024xf32> loc("jit(step)/transpose(jvp())/cond")
  }, {
    %g0 = stablehlo.multiply %dy, %fwd#4 : tensor<1024xf32> loc("jit(step)/transpose(jvp())/cond/branch_1_fun/layer1/mul")
    %g1 = stablehlo.multiply %g0, %fwd#3 : tensor<1024xf32> loc("jit(step)/transpose(jvp())/cond/branch_1_fun/layer1/mul")
    %g2 = stablehlo.multiply %g1, %fwd#2 : tensor<1024xf32> loc("jit(step)/transpose(jvp())/cond/branch_1_fun/layer0/mul")
    %g3 = stablehlo.multiply %g2, %fwd#1 : tensor<1024xf32> loc("jit(step)/transpose(jvp())/cond/branch_1_fun/layer0/mul")
    stablehlo.return %g3 : tensor<1024xf32> loc("jit(step)/transpose(jvp())/cond")
  }) : (tensor<i32>) -> tensor<1024xf32> loc("jit(step)/transpose(jvp())/cond")
  func.return %fwd#0, %grad : tensor<1024xf32>, tensor<1024xf32>
}

// CHECK-LABEL: func.func @tower
// CHECK:         [[F:%\w+]], [[S1:%\w+]], [[R1:%\w+]], [[B0:%\w+]] = "stablehlo.case"(%flag) ({
// CHECK:           [[Z0:%\w+]] = stablehlo.broadcast_in_dim
// CHECK:           [[Z1:%\w+]] = stablehlo.broadcast_in_dim
// CHECK:           [[Z2:%\w+]] = stablehlo.broadcast_in_dim
// CHECK-NEXT:      stablehlo.return %x, [[Z0]], [[Z1]], [[Z2]] :
// CHECK-NEXT:    }, {
// CHECK-NEXT:      [[A:%\w+]] = stablehlo.sine %x
// CHECK-NEXT:      [[B:%\w+]] = stablehlo.tanh [[A]]
// CHECK-NEXT:      [[A1:%\w+]] = stablehlo.sine [[B]]
// CHECK-NEXT:      [[C1:%\w+]] = stablehlo.cosine [[B]]
// CHECK-NEXT:      [[B1:%\w+]] = stablehlo.tanh [[A1]]
// CHECK-NEXT:      [[M1:%\w+]] = stablehlo.multiply [[B1]], [[B1]]
// CHECK-NEXT:      stablehlo.return [[B1]], [[M1]], [[C1]], [[B]] :
// CHECK:         [[G:%\w+]] = "stablehlo.case"(%flag) ({
// CHECK-NEXT:      stablehlo.return %dy
// CHECK-NEXT:    }, {
// CHECK-NEXT:      [[G0:%\w+]] = stablehlo.multiply %dy, [[S1]]
// CHECK-NEXT:      [[G1:%\w+]] = stablehlo.multiply [[G0]], [[R1]]
// CHECK-NEXT:      [[X:%\w+]], [[BX:%\w+]], [[GX:%\w+]] = stablehlo.optimization_barrier %x, [[B0]], [[G1]]
// CHECK-NEXT:      [[C0:%\w+]] = stablehlo.cosine [[X]]
// CHECK-NEXT:      [[M0:%\w+]] = stablehlo.multiply [[BX]], [[BX]]
// CHECK-NEXT:      [[G2:%\w+]] = stablehlo.multiply [[GX]], [[M0]]
// CHECK-NEXT:      [[G3:%\w+]] = stablehlo.multiply [[G2]], [[C0]]
// CHECK-NEXT:      stablehlo.return [[G3]]
// CHECK:         func.return [[F]], [[G]]
