// RUN: recompute-opt %s -p 'recompute-mark{exclude="main:stablehlo.sine"}' 2> /dev/null | filecheck %s --check-prefix=ALL
// RUN: recompute-opt %s -p 'recompute-mark{exclude="main:stablehlo.sine; num:1"}' 2> /dev/null | filecheck %s --check-prefix=ONE
// RUN: recompute-opt %s -p 'recompute-mark{exclude="pre:stablehlo.tanh; main:stablehlo.sine; suf:stablehlo.cosine"}' 2> /dev/null | filecheck %s --check-prefix=CHAIN
// RUN: recompute-opt %s -p 'recompute-mark{exclude="pre:stablehlo.cosine; main:stablehlo.sine"}' 2>&1 > /dev/null | filecheck %s --check-prefix=NONE

// Chains of operations along def-use edges, Paddle's refined_ops_patterns: operations matched by `main` are kept, in at most
// `num` chains. Other operations may be between those of a chain, as %u between %t and %s1.
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %s0 = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block)/sin")
  %t = stablehlo.tanh %s0 : tensor<64xf32> loc("jit(f)/jvp(block)/tanh")
  %u = stablehlo.exponential %x : tensor<64xf32> loc("jit(f)/jvp(block)/exp")
  %s1 = stablehlo.sine %t : tensor<64xf32> loc("jit(f)/jvp(block)/sin")
  %c = stablehlo.cosine %s1 : tensor<64xf32> loc("jit(f)/jvp(block)/cos")
  %o = stablehlo.add %c, %u : tensor<64xf32> loc("jit(f)/jvp(block)/add")
  %y = stablehlo.exponential %o : tensor<64xf32> loc("jit(f)/jvp(head)/exp")
  %g = stablehlo.multiply %ct, %y : tensor<64xf32> loc("jit(f)/transpose(jvp(head))/mul")
  %h = stablehlo.multiply %g, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block))/mul")
  %i = stablehlo.multiply %h, %s1 : tensor<64xf32> loc("jit(f)/transpose(jvp(block))/mul")
  %j = stablehlo.multiply %i, %t : tensor<64xf32> loc("jit(f)/transpose(jvp(block))/mul")
  %k = stablehlo.multiply %j, %s0 : tensor<64xf32> loc("jit(f)/transpose(jvp(block))/mul")
  %l = stablehlo.multiply %k, %u : tensor<64xf32> loc("jit(f)/transpose(jvp(block))/mul")
  func.return %y, %l : tensor<64xf32>, tensor<64xf32>
}
// ALL:        %s0 = {{.*}}recompute.checkpoint
// ALL-NEXT:   %t = {{.*}}recompute.recompute = true
// ALL-NEXT:   %u = {{.*}}recompute.recompute = true
// ALL-NEXT:   %s1 = {{.*}}recompute.checkpoint
// ONE:        %s0 = {{.*}}recompute.checkpoint
// ONE:        %s1 = {{.*}}recompute.recompute = true
// CHAIN:      %s0 = {{.*}}recompute.recompute = true
// CHAIN:      %s1 = {{.*}}recompute.checkpoint
// NONE: remark: exclude pattern 'pre:stablehlo.cosine; main:stablehlo.sine' saves nothing: it matches no operations of a segment
