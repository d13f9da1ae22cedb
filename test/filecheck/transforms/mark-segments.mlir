// RUN: recompute-opt %s -p recompute-inline-gradient,recompute-mark{segments=layer} | filecheck %s
// RUN: recompute-opt %s -p recompute{segments=layer} | filecheck %s --check-prefix=ALL

// The output of a nested segment is recomputed if the policy of the outer segment selects it.
// CHECK-LABEL: func.func @policy
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "layer", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.tanh %a {recompute.segment = "layer", recompute.recompute = true}
// CHECK-NEXT:    %c = stablehlo.cosine %b {recompute.segment = "layer", recompute.recompute = true}
// CHECK-NEXT:    %d = stablehlo.negate %c {recompute.segment = "layer", recompute.checkpoint}
// ALL-COUNT-3:   recompute.duplicated
func.func @policy(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> tensor<4xf32> {
  %a, %b = recompute.segment "attention" {
    %a = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(layer)/sin")
    %b = stablehlo.tanh %a : tensor<4xf32> loc("jit(f)/jvp(layer)/tanh")
    recompute.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  %c = stablehlo.cosine %b : tensor<4xf32> loc("jit(f)/jvp(layer)/cos")
  %d = stablehlo.negate %c : tensor<4xf32> loc("jit(f)/jvp(layer)/neg")
  %e = stablehlo.negate %d : tensor<4xf32> loc("jit(f)/jvp()/neg")
  %j = recompute.gradient {
    %f = stablehlo.multiply %ct, %e : tensor<4xf32> loc("jit(f)/transpose(jvp())/mul")
    %g = stablehlo.multiply %f, %c : tensor<4xf32> loc("jit(f)/transpose(jvp(layer))/mul")
    %h = stablehlo.multiply %g, %b : tensor<4xf32> loc("jit(f)/transpose(jvp(layer))/mul")
    %i = stablehlo.multiply %h, %a : tensor<4xf32> loc("jit(f)/transpose(jvp(layer))/mul")
    recompute.yield %i : tensor<4xf32>
  } : tensor<4xf32>
  func.return %j : tensor<4xf32>
}
