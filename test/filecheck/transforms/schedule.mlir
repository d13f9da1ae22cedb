// RUN: recompute-opt %s -p recompute-schedule 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p recompute-schedule,recompute-schedule 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p recompute-schedule 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK

// Each large value is computed shortly before its use, so that one of them is live at a time instead of two.
func.func @two_sums(%x: tensor<64xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.sine %x : tensor<64xf32>
  %b = stablehlo.cosine %x : tensor<64xf32>
  %c = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  %d = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  %e = stablehlo.add %c, %d : tensor<f32>
  func.return %e : tensor<f32>
}
// CHECK-LABEL: func.func @two_sums
// CHECK-NEXT:    %a = stablehlo.sine
// CHECK-NEXT:    %zero = stablehlo.constant
// CHECK-NEXT:    %c = stablehlo.reduce(%a
// CHECK-NEXT:    %b = stablehlo.cosine
// CHECK-NEXT:    %d = stablehlo.reduce(%b
// CHECK-NEXT:    %e = stablehlo.add
// REMARK:      schedule.mlir:6:{{\d+}}: remark: this order lowers the peak from 516 B to 264 B

// If no order has a lower peak, the given one is kept, including the places of constants.
func.func @chain(%x: tensor<64xf32>) -> tensor<64xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<64xf32>
  %a = stablehlo.sine %x : tensor<64xf32>
  %b = stablehlo.cosine %a : tensor<64xf32>
  %c = stablehlo.add %b, %one : tensor<64xf32>
  func.return %c : tensor<64xf32>
}
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %one = stablehlo.constant
// CHECK-NEXT:    %a = stablehlo.sine
// CHECK-NEXT:    %b = stablehlo.cosine
// CHECK-NEXT:    %c = stablehlo.add
// REMARK-NEXT: remark: the order stays unchanged: no order with a peak below 512 B was found

// Operations with effects, or with unknown effects, keep their order.
func.func @effects(%x: tensor<64xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32>
  %b = stablehlo.cosine %x : tensor<64xf32>
  %c = "test.write"(%b) : (tensor<64xf32>) -> tensor<1xf32>
  %d = "test.write"(%a) : (tensor<64xf32>) -> tensor<1xf32>
  func.return %c, %d : tensor<1xf32>, tensor<1xf32>
}
// CHECK-LABEL: func.func @effects
// CHECK-NEXT:    %b = stablehlo.cosine
// CHECK-NEXT:    %c = "test.write"(%b)
// CHECK-NEXT:    %a = stablehlo.sine
// CHECK-NEXT:    %d = "test.write"(%a)

// The forward pass stays before the backward pass, and the first operation of the backward pass stays first. A copy
// stays behind its token, but need not run at once.
func.func @step(%x: tensor<64xf32>, %ct: tensor<f32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %f = stablehlo.sine %x {recompute.id = 0 : i64, recompute.recompute = true, recompute.segment = "b"} : tensor<64xf32> loc("jit(f)/jvp(b)/sin")
  %y = stablehlo.cosine %f : tensor<64xf32> loc("jit(f)/jvp(b)/cos")
  %n = stablehlo.negate %ct : tensor<f32> loc("jit(f)/transpose(jvp())/neg")
  %t = recompute.token %n : tensor<f32>
  %w = recompute.depend %x after %t : tensor<64xf32>
  %c = stablehlo.sine %w {recompute.copy = 1 : i64, recompute.duplicated, recompute.id = 0 : i64, recompute.segment = "b"} : tensor<64xf32> loc("jit(f)/transpose(jvp(b))/recompute/sin")
  %g = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<64xf32> loc("jit(f)/transpose(jvp(b))/broadcast_in_dim")
  %h = stablehlo.tanh %g : tensor<64xf32> loc("jit(f)/transpose(jvp(b))/tanh")
  %i = stablehlo.multiply %h, %h : tensor<64xf32> loc("jit(f)/transpose(jvp(b))/mul")
  %j = stablehlo.multiply %i, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %y, %j : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %f = stablehlo.sine
// CHECK-NEXT:    %y = stablehlo.cosine
// CHECK-NEXT:    %n = stablehlo.negate
// CHECK-NEXT:    %t = recompute.token
// CHECK-NEXT:    %w = recompute.depend
// CHECK-NEXT:    %g = stablehlo.broadcast_in_dim
// CHECK-NEXT:    %h = stablehlo.tanh
// CHECK-NEXT:    %i = stablehlo.multiply
// CHECK-NEXT:    %c = stablehlo.sine
// CHECK-NEXT:    %j = stablehlo.multiply

// Several gradients keep their sequence, and each is scheduled separately.
func.func @two_gradients(%x: tensor<64xf32>, %y: tensor<64xf32>) -> (tensor<f32>, tensor<f32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %f1 = stablehlo.sine %x {recompute.phase = "primal"} : tensor<64xf32>
  %a1 = stablehlo.cosine %f1 {recompute.phase = "gradient"} : tensor<64xf32>
  %b1 = stablehlo.tanh %f1 {recompute.phase = "gradient"} : tensor<64xf32>
  %g1 = stablehlo.reduce(%a1 init: %zero) applies stablehlo.add across dimensions = [0] {recompute.phase = "gradient"} : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  %h1 = stablehlo.reduce(%b1 init: %zero) applies stablehlo.add across dimensions = [0] {recompute.phase = "gradient"} : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  %f2 = stablehlo.sine %y {recompute.phase = "primal"} : tensor<64xf32>
  %g2 = stablehlo.cosine %f2 {recompute.phase = "gradient"} : tensor<64xf32>
  func.return %g1, %h1, %g2 : tensor<f32>, tensor<f32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @two_gradients
// CHECK-NEXT:    %zero =
// CHECK-NEXT:    %f1 =
// CHECK-NEXT:    %a1 =
// CHECK-NEXT:    %g1 =
// CHECK-NEXT:    %b1 =
// CHECK-NEXT:    %h1 =
// CHECK-NEXT:    %f2 =
// CHECK-NEXT:    %g2 =
