// RUN: recompute-opt %s -p recompute-inline,recompute-mark,recompute-clone | xdsl-opt -p recompute-lower | filecheck %s
// RUN: recompute-opt %s -p recompute | xdsl-opt --print-debuginfo | recompute-check %s - | filecheck %s --check-prefix=PROVED
// RUN: xdsl-opt %s -p recompute | recompute-check %s - | filecheck %s --check-prefix=PROVED

// Stock xdsl-opt with the plugin reads every form of location, such as ranges and aliases that are defined after their
// use. The phases of the step follow from the locations.
// CHECK:      stablehlo.optimization_barrier
// CHECK-NEXT: stablehlo.sine {{.*}}recompute.duplicated
// PROVED: proved equal: 1 result
func.func @step(%x: tensor<1024xf32> loc(#loc)) -> tensor<1024xf32> {
  %a = stablehlo.sine %x : tensor<1024xf32> loc(#loc1)
  %b = stablehlo.exponential %a : tensor<1024xf32> loc(#loc2)
  %c = stablehlo.tanh %b : tensor<1024xf32> loc(#loc3)
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %e = stablehlo.tanh %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %i : tensor<1024xf32>
}
#loc = loc("model.py":1:2)
#loc4 = loc("model.py":1:2 to :8)
#loc1 = loc("jit(f)/jvp(block0)/sin"(#loc4))
#loc2 = loc(fused<"x">["jit(f)/jvp(block0)/exp"(#loc4), #loc])
#loc3 = loc("jit(f)/jvp(block0)/tanh"(callsite(#loc at #loc4)))
