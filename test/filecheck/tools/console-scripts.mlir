// RUN: recompute-opt %s -p recompute-mark,recompute-clone,recompute-cse --no-print-debuginfo -o %t.mlir
// RUN: recompute-check %s %t.mlir | filecheck %s --check-prefix=PROVED
// RUN: xdsl-opt %t.mlir -p recompute-lower | recompute-run - | filecheck %s --check-prefix=RAN

// The installed commands work in a shell: lit runs this file under pytest, too.
// PROVED: proved equal: 1 result, 10 operations before, 14 after
// RAN: peak of temporaries: 16.0 KiB (16384 bytes) metered, 16.0 KiB (16384 bytes) modelled
func.func @step(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.tanh %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %i : tensor<1024xf32>
}
