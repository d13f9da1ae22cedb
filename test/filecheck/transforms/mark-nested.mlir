// RUN: recompute-opt %s -p 'recompute-mark{segments=outer}' 2> /dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-mark{segments=outer},recompute-mark{segments=outer}' 2> /dev/null | filecheck %s

// An operation belongs to its innermost segment, whose boundary counts: %f leaves outer/inner and is kept, as is %a, which
// outer/inner reads. A pattern for the outer segment selects both. Marking is idempotent.
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x {recompute.segment = "outer"} : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %e = stablehlo.exponential %a {recompute.segment = "outer/inner"} : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %f = stablehlo.cosine %e {recompute.segment = "outer/inner"} : tensor<64xf32> loc("jit(f)/jvp()/cos")
  %k = stablehlo.sine %f {recompute.segment = "outer"} : tensor<64xf32> loc("jit(f)/jvp()/sin")
  %b = stablehlo.tanh %k {recompute.segment = "outer"} : tensor<64xf32> loc("jit(f)/jvp()/tanh")
  %d = stablehlo.exponential %b : tensor<64xf32> loc("jit(f)/jvp()/exp")
  %g = stablehlo.multiply %ct, %d : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %k : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %l = stablehlo.multiply %h, %f : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %l, %e : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %j = stablehlo.multiply %i, %a : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %d, %j : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "outer", recompute.checkpoint}
// CHECK-NEXT:    %e = stablehlo.exponential %a {recompute.segment = "outer/inner", recompute.recompute = true}
// CHECK-NEXT:    %f = stablehlo.cosine %e {recompute.segment = "outer/inner", recompute.checkpoint}
// CHECK-NEXT:    %k = stablehlo.sine %f {recompute.segment = "outer", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.tanh %k {recompute.segment = "outer", recompute.checkpoint}
