// RUN: recompute-opt %s -p 'recompute-mark{policy=dots_saveable}' 2> /dev/null | filecheck %s --check-prefix=DOTS
// RUN: recompute-opt %s -p 'recompute-mark{policy=checkpoint_dots_with_no_batch_dims}' 2> /dev/null | filecheck %s --check-prefix=NOBATCH
// RUN: recompute-opt %s -p 'recompute-mark{policy=save_only_these_names names=weights}' 2> /dev/null | filecheck %s --check-prefix=ONLY
// RUN: recompute-opt %s -p 'recompute-mark{policy=save_any_names_but_these names=weights}' 2> /dev/null | filecheck %s --check-prefix=BUT
// RUN: recompute-opt %s -p 'recompute-mark{policy=save_anything_except_these_names names=weights}' 2> /dev/null | filecheck %s --check-prefix=EXCEPT
// RUN: recompute-opt %s -p 'recompute-mark{policy=save_and_offload_only_these_names names=weights}' 2> /dev/null | filecheck %s --check-prefix=OFFLOAD
// RUN: recompute-opt %s -p 'recompute-mark{save=tanh}' 2> /dev/null | filecheck %s --check-prefix=SAVE
// RUN: recompute-opt %s -p 'recompute-mark{save=softmax policy=save_only_these_names names=nobody}' 2>&1 > /dev/null | filecheck %s --check-prefix=NOTHING
// RUN: recompute-opt %s -p 'recompute-mark{policy=everything_saveable}' 2>&1 | filecheck %s --check-prefix=ALL

// The policies of jax.checkpoint_policies, by name, and PyTorch's list of saved operations. %n has a name, as written by
// jax.ad_checkpoint.checkpoint_name.
func.func @step(%x: tensor<2x8x8xf32>, %w: tensor<8x8xf32>, %ct: tensor<2x8x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8x8xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32> loc("jit(f)/jvp(block)/dot_general")
  %q = stablehlo.dot_general %p, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32> loc("jit(f)/jvp(block)/dot_general")
  %n = stablehlo.sine %q {recompute.name = "weights"} : tensor<2x8x8xf32> loc("jit(f)/jvp(block)/sin")
  %t = stablehlo.tanh %n {recompute.name = "squash"} : tensor<2x8x8xf32> loc("jit(f)/jvp(block)/tanh")
  %o = stablehlo.cosine %t : tensor<2x8x8xf32> loc("jit(f)/jvp(block)/cos")
  %y = stablehlo.exponential %o : tensor<2x8x8xf32> loc("jit(f)/jvp(head)/exp")
  %g = stablehlo.multiply %ct, %y : tensor<2x8x8xf32> loc("jit(f)/transpose(jvp(head))/mul")
  %h = stablehlo.multiply %g, %t : tensor<2x8x8xf32> loc("jit(f)/transpose(jvp(block))/mul")
  %i = stablehlo.multiply %h, %n : tensor<2x8x8xf32> loc("jit(f)/transpose(jvp(block))/mul")
  %j = stablehlo.multiply %i, %q : tensor<2x8x8xf32> loc("jit(f)/transpose(jvp(block))/mul")
  %k = stablehlo.multiply %j, %p : tensor<2x8x8xf32> loc("jit(f)/transpose(jvp(block))/mul")
  func.return %y, %k : tensor<2x8x8xf32>, tensor<2x8x8xf32>
}
// DOTS:         %p = {{.*}}recompute.checkpoint
// DOTS-NEXT:    %q = {{.*}}recompute.checkpoint
// DOTS-NEXT:    %n = {{.*}}recompute.recompute = true
// DOTS-NEXT:    %t = {{.*}}recompute.recompute = true

// NOBATCH:      %p = {{.*}}recompute.checkpoint
// NOBATCH-NEXT: %q = {{.*}}recompute.recompute = true

// ONLY:         %p = {{.*}}recompute.recompute = true
// ONLY-NEXT:    %q = {{.*}}recompute.recompute = true
// ONLY-NEXT:    %n = {{.*}}recompute.checkpoint
// ONLY-NEXT:    %t = {{.*}}recompute.recompute = true

// Save all named values except these.
// BUT:          %p = {{.*}}recompute.recompute = true
// BUT-NEXT:     %q = {{.*}}recompute.recompute = true
// BUT-NEXT:     %n = {{.*}}recompute.recompute = true
// BUT-NEXT:     %t = {{.*}}recompute.checkpoint

// Save all values except these.
// EXCEPT:       %p = {{.*}}recompute.checkpoint
// EXCEPT-NEXT:  %q = {{.*}}recompute.checkpoint
// EXCEPT-NEXT:  %n = {{.*}}recompute.recompute = true
// EXCEPT-NEXT:  %t = {{.*}}recompute.checkpoint

// A value that may be moved to the host is kept, with a mark for the pass that moves it.
// OFFLOAD:      %n = {{.*}}recompute.checkpoint, recompute.recompute = "offload"
// OFFLOAD-NEXT: %t = {{.*}}recompute.recompute = true

// SAVE:         %n = {{.*}}recompute.recompute = true
// SAVE-NEXT:    %t = {{.*}}recompute.checkpoint

// NOTHING-DAG: remark: names=nobody saves nothing: it matches no operation of a segment
// NOTHING-DAG: remark: save=softmax saves nothing: it matches no operation of a segment

// ALL: remark: segments 'block' and 'head' are not recomputed: marks, checkpoints or the policy demand that every value is saved
