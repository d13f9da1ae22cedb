// RUN: recompute-opt %s -p recompute -o %t.after
// RUN: filecheck %s --input-file %t.after
// RUN: recompute-check %s %t.after --execute | filecheck %s --check-prefix=CHECKED
// RUN: recompute-opt %s -p recompute-inline-gradient,recompute | filecheck %s --check-prefix=FLAT
// RUN: recompute-opt %s -p recompute-clone --verify-diagnostics

// Two gradients as regions stay regions: each gradient contains the copies of its own forward pass, and the gate of
// the second is not a value of the first gradient, which is available before the second forward pass begins.
// CHECK-LABEL: func.func @two_steps
// CHECK-NOT:     recompute.segment {
// CHECK:         %i = recompute.gradient {
// CHECK-NEXT:      %g = stablehlo.multiply %y, %y :
// CHECK-NEXT:      [[X:%\w+]], [[G:%\w+]] = stablehlo.optimization_barrier %x, %g
// CHECK-NEXT:      stablehlo.sine [[X]] {recompute.segment = "first"
// CHECK:           recompute.yield
// CHECK-NEXT:    } : tensor<1024xf32>
// CHECK-NEXT:    %v = stablehlo.subtract %x, %i {recompute.phase = "primal"}
// CHECK:         %o = recompute.gradient {
// CHECK-NEXT:      [[J:%\w+]] = stablehlo.multiply %z, %z :
// CHECK-NEXT:      [[V:%\w+]], [[K:%\w+]] = stablehlo.optimization_barrier %v, [[J]] : tensor<1024xf32>, tensor<1024xf32>
// CHECK-NEXT:      stablehlo.sine [[V]] {recompute.segment = "second"
// CHECK:           recompute.yield
// CHECK-NEXT:    } : tensor<1024xf32>

// FLAT-LABEL: func.func @two_steps
// FLAT-NOT:     recompute.gradient
// FLAT:         stablehlo.optimization_barrier {recompute.phase = "gradient"}
// FLAT:         stablehlo.optimization_barrier {recompute.phase = "gradient"}
// CHECKED: proved equal:
// CHECKED-NEXT: executed: equal bit for bit
func.func @two_steps(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  // expected-error@+1 {{recompute.segment must be flattened before phases can be assigned to its operations: run recompute-inline-segments}}
  %a, %b, %c, %s = recompute.segment "first" {
    %a = stablehlo.sine %x : tensor<1024xf32>
    %b = stablehlo.exponential %a : tensor<1024xf32>
    %c = stablehlo.cosine %b : tensor<1024xf32>
    %s = stablehlo.tanh %c : tensor<1024xf32>
    recompute.yield %a, %b, %c, %s : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  } : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  %y = stablehlo.negate %s : tensor<1024xf32>
  %i = recompute.gradient {
    %g = stablehlo.multiply %y, %y : tensor<1024xf32>
    %h = stablehlo.multiply %g, %c : tensor<1024xf32>
    %k = stablehlo.multiply %h, %b : tensor<1024xf32>
    %i = stablehlo.multiply %k, %a : tensor<1024xf32>
    recompute.yield %i : tensor<1024xf32>
  } : tensor<1024xf32>
  %v = stablehlo.subtract %x, %i : tensor<1024xf32>
  %d, %e, %f, %r = recompute.segment "second" {
    %d = stablehlo.sine %v : tensor<1024xf32>
    %e = stablehlo.exponential %d : tensor<1024xf32>
    %f = stablehlo.cosine %e : tensor<1024xf32>
    %r = stablehlo.tanh %f : tensor<1024xf32>
    recompute.yield %d, %e, %f, %r : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  } : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  %z = stablehlo.negate %r : tensor<1024xf32>
  %o = recompute.gradient {
    %j = stablehlo.multiply %z, %z : tensor<1024xf32>
    %l = stablehlo.multiply %j, %f : tensor<1024xf32>
    %m = stablehlo.add %l, %i : tensor<1024xf32>
    %n = stablehlo.multiply %m, %e : tensor<1024xf32>
    %o = stablehlo.multiply %n, %d : tensor<1024xf32>
    recompute.yield %o : tensor<1024xf32>
  } : tensor<1024xf32>
  func.return %o : tensor<1024xf32>
}
