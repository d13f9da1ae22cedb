// RUN: recompute-opt %s -p recompute-clone 2>&1 >/dev/null | filecheck %s --check-prefix=CLONE
// RUN: recompute-opt %s -p recompute-clone,recompute-mark 2>&1 >/dev/null | filecheck %s --check-prefix=CLONE
// RUN: not recompute-opt %s -p 'recompute-clone{strict=true}' 2>&1 >/dev/null | filecheck %s --check-prefix=STRICT
// RUN: recompute-opt %s -p recompute-lower 2>&1 >/dev/null | filecheck %s --check-prefix=LOWER
// RUN: recompute-opt %s -p recompute-offload 2>&1 >/dev/null | filecheck %s --check-prefix=OFFLOAD
// RUN: recompute-opt %s -p recompute-merge-remat 2>&1 >/dev/null | filecheck %s --check-prefix=MERGE
// RUN: recompute-opt %s -p recompute-verify 2>&1 >/dev/null | filecheck %s --check-prefix=VERIFY
// RUN: recompute-opt %s -p recompute-mark,recompute-verify 2>&1 >/dev/null | filecheck %s --check-prefix=VERIFY
// RUN: recompute-opt %s -p recompute-mark,recompute-clone,recompute-lower,recompute-verify 2>&1 >/dev/null | filecheck %s --check-prefix=ORDER --allow-empty
// RUN: recompute-opt %s -p recompute-cse,recompute-inline,recompute-inline-segments,recompute-take-marks,recompute-flatten-tuples,cse 2>&1 >/dev/null | filecheck %s --check-prefix=SILENT --allow-empty

// A pass without its input does nothing, and a remark names the pass to run before it. Normal no-ops are silent.

// CLONE:       remark: nothing is copied: no operation has the mark recompute.recompute; run recompute-mark, recompute-plan or recompute-offload before recompute-clone
// STRICT:      error: nothing is copied
// LOWER:       remark: nothing is lowered: there is no recompute.token and no copy; run recompute-clone before recompute-lower
// OFFLOAD:     remark: nothing is offloaded: no value has the mark 'offload'
// MERGE:       remark: nothing is merged: no location in the step names a barrier of jax.checkpoint
// VERIFY:      :1:1: remark: no copies to verify: there is no recompute.token, and no operation has the attribute recompute.copy; run recompute-clone before recompute-verify
// ORDER-NOT:   remark: no
// SILENT-NOT:  remark

func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.cosine %a : tensor<64xf32> loc("jit(f)/jvp(block0)/cos")
  %c = stablehlo.tanh %b : tensor<64xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %ct, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %c, %i : tensor<64xf32>, tensor<64xf32>
}
