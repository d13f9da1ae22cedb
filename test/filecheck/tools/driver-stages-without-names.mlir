// RUN: recompute-opt %s -q -p 'recompute{primal-results=0},recompute-strip' 2>/dev/null >%t.whole
// RUN: recompute-opt %s -q -p 'recompute-take-marks,recompute-inline,recompute-inline-gradient,recompute-inline-segments,recompute-phase{primal-results=0},recompute-loops,recompute-plan,recompute-clone,recompute-shard-kept,recompute-cse,recompute-lower,recompute-stagger,recompute-verify,recompute-strip' 2>/dev/null >%t.stages
// RUN: diff %t.whole %t.stages
// RUN: filecheck %s --input-file %t.stages
// RUN: recompute-opt %s -p 'recompute-phase{primal-results=0},recompute-plan,recompute-clone,recompute-cse,recompute-lower,recompute-stagger,recompute-verify,recompute-strip' 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-take-marks,recompute-inline,recompute-inline-gradient,recompute-inline-segments,recompute-phase{primal-results=0},recompute-loops,recompute-mark,recompute-clone,recompute-shard-kept,recompute-cse,recompute-lower,recompute-stagger,recompute-verify' 2>&1 >/dev/null | filecheck %s --check-prefix=MARK

// A step without names has no segments that recompute-mark could mark. With recompute-plan in its place, the passes
// inside recompute make the same copies as recompute (docs/driver.md).

// CHECK: stablehlo.optimization_barrier
// CHECK: stablehlo.optimization_barrier
// MARK:  no segments: the locations name no scope (see jax.named_scope); the attribute recompute.segment defines segments, and recompute-plan needs no names
// MARK:  nothing is copied

func.func @step(%x: tensor<1024xf32>) -> (tensor<f32>, tensor<1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.sine %x : tensor<1024xf32>
  %b = stablehlo.exponential %a : tensor<1024xf32>
  %c = stablehlo.tanh %b : tensor<1024xf32>
  %d = stablehlo.sine %c : tensor<1024xf32>
  %e = stablehlo.exponential %d : tensor<1024xf32>
  %y = stablehlo.tanh %e : tensor<1024xf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  %f = stablehlo.multiply %y, %e : tensor<1024xf32>
  %g = stablehlo.multiply %f, %d : tensor<1024xf32>
  %h = stablehlo.multiply %g, %c : tensor<1024xf32>
  %i = stablehlo.multiply %h, %b : tensor<1024xf32>
  %j = stablehlo.multiply %i, %a : tensor<1024xf32>
  func.return %loss, %j : tensor<f32>, tensor<1024xf32>
}
