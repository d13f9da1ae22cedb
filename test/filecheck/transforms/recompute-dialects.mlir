// RUN: recompute-opt %s -p 'recompute{target=none}' --split-input-file | filecheck %s
// RUN: recompute-opt %s -p 'recompute{target=none}' --split-input-file --verify-diagnostics

// A loop and a branch are copied whole, with their bodies, where the gradient needs them, and so are their destinations.

// CHECK-LABEL: func.func @loop
// CHECK:         scf.for
// CHECK:         [[G:%\w+]] = arith.mulf %ct, %a3 {recompute.phase = "gradient"}
// CHECK:         [[F:%\w+]] = scf.for
// CHECK:           math.sin
// CHECK:         } {recompute.segment = "r", recompute.id = {{.*}}, recompute.copy = 1 : i64
// CHECK:         arith.mulf {{.*}}, [[F]] {recompute.phase = "gradient"
// expected-remark@+1 {{the marked operations cost 768 FLOPs more and lower no peak: remove the marks}}
func.func @loop(%x: tensor<256xf32>, %ct: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %u = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %x) -> (tensor<256xf32>) {
    %s = math.sin %p : tensor<256xf32>
    scf.yield %s : tensor<256xf32>
  } {recompute.segment = "r", recompute.recompute = true}
  %a0 = math.exp %u : tensor<256xf32>
  %a1 = math.sin %a0 : tensor<256xf32>
  %a2 = math.cos %a1 : tensor<256xf32>
  %a3 = math.exp %a2 : tensor<256xf32>
  %g0 = arith.mulf %ct, %a3 {recompute.phase = "gradient"} : tensor<256xf32>
  %g1 = arith.mulf %g0, %u {recompute.phase = "gradient"} : tensor<256xf32>
  func.return %a3, %g1 : tensor<256xf32>, tensor<256xf32>
}

// -----

// Operations on memory are kept, and so are undeclared operations: a remark gives the reason.

// CHECK-LABEL: func.func @memory
// CHECK-NOT:     recompute.copy
// expected-remark@+4 {{segment 'segment0' is not recomputed: gradient operations read results of memref.load and acme.swish}}
// expected-remark@+2 {{none of the tried divisions into segments frees memory}}
// expected-remark@+1 {{nothing is recomputed: the step is left as it is}}
func.func @memory(%m: memref<8xf32>, %ct: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %v = memref.load %m[%c0] {recompute.recompute = true} : memref<8xf32> // expected-remark {{memref.load is not recomputed: it reads memory that may be overwritten before the copy runs}}
  %w = "acme.swish"(%v) {recompute.recompute = true} : (f32) -> f32 // expected-remark {{the effects of acme.swish are unknown; if it is pure, declare it in a file for --load-rules, to the passes, `from recompute.rules import pure, register; register("acme.swish", pure())`, and to the proof, `from recompute.proof import register_pure; register_pure("acme.swish")`}}
  %g0 = arith.mulf %ct, %ct {recompute.phase = "gradient"} : f32
  %g1 = arith.mulf %g0, %v {recompute.phase = "gradient"} : f32
  %g2 = arith.mulf %g1, %w {recompute.phase = "gradient"} : f32
  func.return %g2 : f32
}
