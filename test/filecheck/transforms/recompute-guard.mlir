// RUN: recompute-opt %s -p 'recompute{attempts=1}' --split-input-file 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{attempts=1}' --split-input-file --verify-diagnostics
// RUN: recompute-opt %s -p 'recompute{target=none attempts=1}' --split-input-file 2>&1 | filecheck %s --check-prefix=NONE

// A step whose peak is in the update is left unchanged. Recomputation would help XLA, which fuses the update, but
// an executor that stores every result would recompute without saving memory.

// CHECK-LABEL: func.func @peak_in_update
// CHECK:         optimization_barrier
// CHECK-NEXT:    stablehlo.sine {{.*}}recompute.duplicated
// NONE:        remark: recomputing changes the peak from 28.0 KiB (28672 bytes) to 28.0 KiB (28672 bytes): a reduction of less than 1 %: the step is left as it is
// NONE-LABEL:  func.func @peak_in_update
// NONE-NOT:      recompute.duplicated

// expected-remark@+5 {{segment 'block1' is not recomputed: the backward pass begins with these values}}
func.func @peak_in_update(%x: tensor<1024xf32>, %w: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %u = stablehlo.multiply %w, %w : tensor<1024xf32> loc("jit(f)/mul")
  %v = stablehlo.sine %w : tensor<1024xf32> loc("jit(f)/sin")
  %p = stablehlo.cosine %w : tensor<1024xf32> loc("jit(f)/cos")
  %q = stablehlo.negate %w : tensor<1024xf32> loc("jit(f)/neg")
  %r = stablehlo.tanh %w : tensor<1024xf32> loc("jit(f)/tanh")
  %s = stablehlo.add %u, %v : tensor<1024xf32> loc("jit(f)/add")
  %t = stablehlo.add %s, %p : tensor<1024xf32> loc("jit(f)/add")
  %k = stablehlo.add %t, %q : tensor<1024xf32> loc("jit(f)/add")
  %l = stablehlo.add %k, %r : tensor<1024xf32> loc("jit(f)/add")
  %n = stablehlo.subtract %l, %i : tensor<1024xf32> loc("jit(f)/sub")
  func.return %y, %n : tensor<1024xf32>, tensor<1024xf32>
}

// -----

// A step is left unchanged if a peak of the emitted step rises. Recomputation would save 256 bytes in program order,
// but one barrier waits for all values that the copies read, so an eager executor would have more values live than
// before.

// CHECK-LABEL: func.func @ready_at_once
// CHECK-NOT:     recompute.duplicated
// NONE-LABEL:  func.func @ready_at_once
// NONE:          recompute.duplicated

// expected-remark@+1 {{recomputing raises the peak of an executor that starts operations as soon as it can from 2.0 KiB (2048 bytes) to 2.3 KiB (2304 bytes): the step is left as it is}}
func.func @ready_at_once(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("jit(step)/jvp()/dot_general")
  %1 = stablehlo.subtract %0, %0 : tensor<8x8xf32> loc("jit(step)/jvp(block1)/sub")
  %2 = stablehlo.multiply %0, %1 : tensor<8x8xf32> loc("jit(step)/jvp(block1)/mul")
  %3 = stablehlo.logistic %0 {recompute.recompute = false} : tensor<8x8xf32> loc("jit(step)/jvp(block1)/logistic")
  %4 = stablehlo.constant dense<1.000000e+00> : tensor<f32> loc("jit(step)")
  %5 = stablehlo.subtract %3, %3 : tensor<8x8xf32> loc("jit(step)/jvp(block1)/sub")
  %6 = stablehlo.multiply %3, %5 : tensor<8x8xf32> loc("jit(step)/jvp(block1)/mul")
  %7 = stablehlo.cosine %3 : tensor<8x8xf32> loc("jit(step)/jvp(block1)/cos")
  %8 = stablehlo.negate %3 : tensor<8x8xf32> loc("jit(step)/jvp(block1)/neg")
  %9 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<8x8xf32> loc("jit(step)/jvp(block1)/broadcast_in_dim")
  %10 = stablehlo.compare LT, %7, %9, FLOAT {recompute.recompute = false} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1> loc("jit(step)/jvp(block1)/compare")
  %11 = stablehlo.select %10, %7, %7 {recompute.recompute = "prefer_save"} : tensor<8x8xi1>, tensor<8x8xf32> loc("jit(step)/jvp(block1)/select_n")
  %12 = stablehlo.multiply %11, %11 : tensor<8x8xf32> loc("jit(step)/transpose(jvp())/mul")
  %13 = stablehlo.multiply %11, %11 : tensor<8x8xf32> loc("jit(step)/transpose(jvp())/mul")
  %14 = stablehlo.add %12, %13 : tensor<8x8xf32> loc("jit(step)/transpose(jvp())/add")
  %15 = stablehlo.multiply %14, %11 : tensor<8x8xf32> loc("jit(step)/transpose(jvp())/mul")
  %16 = stablehlo.multiply %15, %9 : tensor<8x8xf32> loc("jit(step)/transpose(jvp(block1))/mul")
  %17 = stablehlo.add %15, %16 : tensor<8x8xf32> loc("jit(step)/transpose(jvp(block1))/add")
  %18 = stablehlo.multiply %17, %7 : tensor<8x8xf32> loc("jit(step)/transpose(jvp(block1))/mul")
  %19 = stablehlo.multiply %18, %8 : tensor<8x8xf32> loc("jit(step)/transpose(jvp(block1))/mul")
  %20 = stablehlo.multiply %19, %6 : tensor<8x8xf32> loc("jit(step)/transpose(jvp(block1))/mul")
  %21 = stablehlo.multiply %20, %2 : tensor<8x8xf32> loc("jit(step)/transpose(jvp(block1))/mul")
  func.return %21 : tensor<8x8xf32>
}
