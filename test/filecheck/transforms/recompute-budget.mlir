// RUN: recompute-opt %s -p 'recompute{primal-results=0 budget=36KiB memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=KEPT
// RUN: not recompute-opt %s -p 'recompute{primal-results=0 budget=28KiB memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=ORDER
// RUN: not recompute-opt %s -p 'recompute{primal-results=0 budget=17KiB}' 2>&1 >/dev/null | filecheck %s --check-prefix=MODEL
// RUN: recompute-opt %s -p 'recompute{primal-results=0 budget=90% memory-model=order}' 2>&1 >/dev/null | filecheck %s --check-prefix=SHARE
// RUN: not recompute-opt %s -p 'recompute{primal-results=0 budget=36Kib}' 2>&1 >/dev/null | filecheck %s --check-prefix=BITS

// A budget in bytes is one of device memory: messages state the arguments and results that it leaves room for.

// KEPT: remark: budget of 36KiB (20.0 KiB of temporaries beside 16.0 KiB of arguments and results): 28.0 KiB ->
// ORDER: error: no plan is within the budget of 28KiB (12.0 KiB of 28.0 KiB of temporaries beside 16.0 KiB of arguments and results) in program order: no plan needs less than 12.0 KiB (12288 bytes), which are live while {{.*}}; the best plan found needs {{.*}}; a budget in bytes includes arguments and results
// MODEL: error: no plan is within the budget of 17KiB (1020 B of {{[^ ]+}} KiB of temporaries beside 16.0 KiB of arguments and results) by the XLA:CPU model
// SHARE: remark: budget of 90% ({{[^ ]+}} KiB of temporaries): 28.0 KiB ->
// BITS: error: invalid budget '36Kib': a 'b' means bits; did you mean '36KiB'?

func.func @step(%x: tensor<1024xf32>, %w: tensor<1024xf32>) -> (tensor<f32>, tensor<1024xf32>, tensor<1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.sine %x : tensor<1024xf32>
  %b = stablehlo.exponential %a : tensor<1024xf32>
  %c = stablehlo.tanh %b : tensor<1024xf32>
  %d = stablehlo.sine %c : tensor<1024xf32>
  %e = stablehlo.exponential %d : tensor<1024xf32>
  %f = stablehlo.tanh %e : tensor<1024xf32>
  %loss = stablehlo.reduce(%f init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.multiply %f, %e : tensor<1024xf32>
  %h = stablehlo.multiply %g, %d : tensor<1024xf32>
  %h1 = stablehlo.multiply %h, %c : tensor<1024xf32>
  %i = stablehlo.multiply %h1, %b : tensor<1024xf32>
  %j = stablehlo.multiply %i, %a : tensor<1024xf32>
  %new = stablehlo.subtract %w, %j : tensor<1024xf32>
  func.return %loss, %new, %w : tensor<f32>, tensor<1024xf32>, tensor<1024xf32>
}
