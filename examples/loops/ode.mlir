// The differential equation x' = tanh(w x) and its gradient, with %n steps of Euler's method (at most 64), as compilers
// write it that differentiate loops of run-time length. The loops are left unchanged, because it is unknown which
// iteration wrote a slice:
//
//   recompute-opt examples/loops/ode.mlir -p 'recompute{primal-results=0}'
//
// ode.py contains the form that JAX differentiates: a scan of 64 steps, in which the steps after %n have no effect.
!x = tensor<8xf32>
!stack = tensor<64x8xf32>

func.func public @ode(%n: tensor<i32>, %h: tensor<f32>, %w: !x, %x0: !x) -> (!x, !x, !x) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : !x
  %ones = stablehlo.constant dense<1.0> : !x
  %empty = stablehlo.constant dense<0.0> : !stack
  %length = stablehlo.broadcast_in_dim %h, dims = [] : (tensor<f32>) -> !x

  %count, %end, %states = stablehlo.while(%i = %zero, %x = %x0, %s = %empty) : tensor<i32>, !x, !stack
  cond {
    %more = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %row = stablehlo.reshape %x : (!x) -> tensor<1x8xf32>
    %s1 = stablehlo.dynamic_update_slice %s, %row, %i, %zero : (!stack, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> !stack
    %wx = stablehlo.multiply %w, %x : !x
    %slope = stablehlo.tanh %wx : !x
    %step = stablehlo.multiply %length, %slope : !x
    %x1 = stablehlo.add %x, %step : !x
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %x1, %s1 : tensor<i32>, !x, !stack
  }

  // The gradient of the sum of what comes out.
  %last = stablehlo.subtract %n, %one : tensor<i32>
  %done, %dx, %dw = stablehlo.while(%j = %zero, %a = %ones, %g = %none) : tensor<i32>, !x, !x
  cond {
    %more = stablehlo.compare LT, %j, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %at = stablehlo.subtract %last, %j : tensor<i32>
    %row = stablehlo.dynamic_slice %states, %at, %zero, sizes = [1, 8] : (!stack, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    %x = stablehlo.reshape %row : (tensor<1x8xf32>) -> !x
    %wx = stablehlo.multiply %w, %x : !x
    %t = stablehlo.tanh %wx : !x
    %tt = stablehlo.multiply %t, %t : !x
    %rest = stablehlo.subtract %ones, %tt : !x
    %ha = stablehlo.multiply %length, %a : !x
    %part = stablehlo.multiply %ha, %rest : !x
    %to_x = stablehlo.multiply %part, %w : !x
    %to_w = stablehlo.multiply %part, %x : !x
    %a1 = stablehlo.add %a, %to_x : !x
    %g1 = stablehlo.add %g, %to_w : !x
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %a1, %g1 : tensor<i32>, !x, !x
  }
  func.return %end, %dx, %dw : !x, !x, !x
}
