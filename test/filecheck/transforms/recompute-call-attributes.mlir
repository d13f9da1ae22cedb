// RUN: recompute-opt %s -p 'recompute{outputs=true}' 2> %t | filecheck %s
// RUN: filecheck %s --input-file=%t --check-prefix=SAYS
// RUN: recompute-opt %s -p 'recompute{calls=false}' | filecheck %s --check-prefix=STAYS
// RUN: recompute-opt %s -p 'recompute{budget=min}' | filecheck %s --check-prefix=STAYS
// RUN: recompute-opt %s -p 'recompute{outputs=true}' --emit-plan %t.plan > %t.first
// RUN: recompute-opt %s -p 'recompute{plan=%t.plan}' > %t.again
// RUN: diff %t.first %t.again

// If a call with attributes of other tools cannot be restored from its copied operations, such calls stay in place, since the
// attributes would be lost. With calls=false and under budgets they always stay; a plan applies to the original step.
// SAYS: remark: the call to 'host' is neither inlined nor recomputed: mhlo.frontend_attributes would be lost
func.func @s(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %s0 = stablehlo.sine %x : tensor<64xf32> loc("jit(s)/jvp(block0)/sin")
  %h0:2 = func.call @host(%s0) {mhlo.frontend_attributes = {_xla_compute_type = "host"}} : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) loc("jit(s)/jvp(block0)/jit(host)")
  %t0 = stablehlo.tanh %h0#0 : tensor<64xf32> loc("jit(s)/jvp(block0)/tanh")
  %s1 = stablehlo.sine %t0 : tensor<64xf32> loc("jit(s)/jvp(block1)/sin")
  %h1:2 = func.call @host(%s1) {mhlo.frontend_attributes = {_xla_compute_type = "host"}} : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) loc("jit(s)/jvp(block1)/jit(host)")
  %t1 = stablehlo.tanh %h1#0 : tensor<64xf32> loc("jit(s)/jvp(block1)/tanh")
  %s2 = stablehlo.sine %t1 : tensor<64xf32> loc("jit(s)/jvp(block2)/sin")
  %h2:2 = func.call @host(%s2) {mhlo.frontend_attributes = {_xla_compute_type = "host"}} : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) loc("jit(s)/jvp(block2)/jit(host)")
  %t2 = stablehlo.tanh %h2#0 : tensor<64xf32> loc("jit(s)/jvp(block2)/tanh")
  %y = stablehlo.sine %t2 : tensor<64xf32> loc("jit(s)/jvp(loss)/sin")
  %g20 = stablehlo.multiply %t2, %t2 : tensor<64xf32> loc("jit(s)/transpose(jvp(block2))/mul")
  %g21 = stablehlo.multiply %g20, %h2#1 : tensor<64xf32> loc("jit(s)/transpose(jvp(block2))/mul")
  %g22 = stablehlo.multiply %g21, %s2 : tensor<64xf32> loc("jit(s)/transpose(jvp(block2))/mul")
  %g10 = stablehlo.multiply %g22, %t1 : tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %g11 = stablehlo.multiply %g10, %h1#1 : tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %g12 = stablehlo.multiply %g11, %s1 : tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %g00 = stablehlo.multiply %g12, %t0 : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %g01 = stablehlo.multiply %g00, %h0#1 : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %g02 = stablehlo.multiply %g01, %s0 : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  func.return %y, %g02 : tensor<64xf32>, tensor<64xf32>
}
func.func private @host(%a: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = stablehlo.sine %a : tensor<64xf32> loc("sin")
  %1 = stablehlo.cosine %a : tensor<64xf32> loc("cos")
  %2 = stablehlo.tanh %0 : tensor<64xf32> loc("tanh")
  func.return %2, %1 : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @s
// CHECK-COUNT-3: func.call @host({{.*}}mhlo.frontend_attributes
// CHECK:         stablehlo.optimization_barrier
// CHECK-NOT:     func.call
// CHECK:       func.func private @host
// STAYS-COUNT-3: func.call @host({{.*}}mhlo.frontend_attributes
// STAYS:       func.func private @host
// STAYS-NOT:   recompute.whole
