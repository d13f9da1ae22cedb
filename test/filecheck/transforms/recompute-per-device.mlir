// RUN: recompute-opt %s -p recompute 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segments=block*}' 2>/dev/null | filecheck %s --check-prefix=NAMED
// RUN: recompute-opt %s -p 'recompute-mark,recompute-clone,recompute-cse,recompute-verify,recompute-lower,recompute-verify' 2>/dev/null | filecheck %s --check-prefix=NAMED
// RUN: recompute-opt %s -p recompute --print-debuginfo -o %t.mlir 2>/dev/null && recompute-check %s %t.mlir | filecheck %s --check-prefix=PROVED
// RUN: recompute-opt %s -t explain | filecheck %s --check-prefix=EXPLAIN

// The gradient of a shard_map has two bodies per device with residuals between them. The residuals are removed: when the
// cotangent arrives, the second body recomputes all of them from the argument.

// CHECK:         [[Y:%\w+]] = sdy.manual_computation(%x)
// CHECK-SAME:      out_shardings=[<@mesh, [{"a"}]>]
// CHECK:         sdy.manual_computation(%ct, %x)
// CHECK-SAME:      in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{"a"}]>]
// CHECK-NEXT:      optimization_barrier {{.*}} %p, %t
// CHECK-NEXT:      stablehlo.sine {{.*}}recompute.duplicated

// With two blocks, the value between them is the only residual, sharded as each device holds it.

// NAMED:         {{%\w+}}, [[KEPT:%\w+]] = sdy.manual_computation(%x)
// NAMED-SAME:      out_shardings=[<@mesh, [{"a"}]>, <@mesh, [{"a", "b"}]>]
// NAMED:         sdy.manual_computation(%ct, %x, [[KEPT]])
// NAMED-SAME:      in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{"a"}]>, <@mesh, [{"a", "b"}]>]
// NAMED:           optimization_barrier
// NAMED-NEXT:      stablehlo.sine {{.*}}recompute.duplicated

// PROVED:        proved equal

// EXPLAIN:       function @main/devices0
// EXPLAIN:       block0

sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<2048xf32>, %ct: tensor<2048xf32>) -> (tensor<2048xf32>, tensor<2048xf32>) {
  %y, %r0, %r1, %r2, %r3, %r4 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>]
    out_shardings=[<@mesh, [{"a"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a"}]>]
    manual_axes={"a", "b"} (%p: tensor<1024xf32>) {
    %a = stablehlo.sine %p : tensor<1024xf32> loc("block0/sin")
    %b = stablehlo.exponential %a : tensor<1024xf32> loc("block0/exp")
    %c = stablehlo.tanh %b : tensor<1024xf32> loc("block0/tanh")
    %d = stablehlo.sine %c : tensor<1024xf32> loc("block1/sin")
    %e = stablehlo.exponential %d : tensor<1024xf32> loc("block1/exp")
    %f = stablehlo.tanh %e : tensor<1024xf32> loc("block1/tanh")
    sdy.return %f, %a, %b, %d, %e, %p : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
  } : (tensor<2048xf32>) -> (tensor<2048xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<2048xf32>) loc("jit(f)/jvp()/shard_map")
  %g = sdy.manual_computation(%ct, %r0, %r1, %r2, %r3, %r4)
    in_shardings=[<@mesh, [{"a"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a", "b"}]>, <@mesh, [{"a"}]>]
    out_shardings=[<@mesh, [{"a"}]>]
    manual_axes={"a", "b"} (%t: tensor<1024xf32>, %a: tensor<1024xf32>, %b: tensor<1024xf32>, %d: tensor<1024xf32>, %e: tensor<1024xf32>, %p: tensor<1024xf32>) {
    %h = stablehlo.multiply %t, %e : tensor<1024xf32> loc("block1/mul")
    %i = stablehlo.multiply %h, %d : tensor<1024xf32> loc("block1/mul")
    %j = stablehlo.multiply %i, %b : tensor<1024xf32> loc("block0/mul")
    %k = stablehlo.multiply %j, %a : tensor<1024xf32> loc("block0/mul")
    %l = stablehlo.multiply %k, %p : tensor<1024xf32> loc("block0/mul")
    sdy.return %l : tensor<1024xf32>
  } : (tensor<2048xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<8192xf32>, tensor<2048xf32>) -> tensor<2048xf32> loc("jit(f)/transpose(jvp())/shard_map")
  func.return %y, %g : tensor<2048xf32>, tensor<2048xf32>
}
