// RUN: recompute-opt %s -p 'recompute{segments=block0}' --split-input-file --no-print-debuginfo | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segments=block0}' --split-input-file --no-print-debuginfo | filecheck %s --check-prefix=STAMPS

// The attributes that track the origin of inlined operations are never written.
// STAMPS-NOT: recompute.call
// STAMPS-NOT: recompute.origin

// A copy of a whole call is a call: the attributes of the copy are on the call, not in the function.
func.func @whole(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %two = stablehlo.constant dense<2.0> : tensor<64xf32> loc("jit(s)/jvp(block0)/jit(scaled)")
  %a = func.call @scaled(%x, %two) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> loc("jit(s)/jvp(block0)/jit(scaled)")
  %b = stablehlo.exponential %a : tensor<64xf32> loc("jit(s)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<64xf32> loc("jit(s)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<64xf32> loc("jit(s)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<64xf32> loc("jit(s)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<64xf32> loc("jit(s)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<64xf32>, tensor<64xf32>
}
func.func private @scaled(%x: tensor<64xf32>, %k: tensor<64xf32>) -> tensor<64xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<64xf32>
  %0 = stablehlo.multiply %x, %k : tensor<64xf32> loc("mul")
  %1 = stablehlo.add %0, %two : tensor<64xf32> loc("add")
  func.return %1 : tensor<64xf32>
}
// CHECK-LABEL: func.func @whole
// CHECK-NEXT:    [[TWO:%\w+]] = stablehlo.constant
// CHECK-NEXT:    func.call @scaled(%x, [[TWO]]) {recompute.segment = "block0", recompute.id = [[ID:\d+]] : i64}
// CHECK:         [[X:%\w+]], {{%\w+}} = stablehlo.optimization_barrier %x
// CHECK-NEXT:    func.call @scaled([[X]], [[TWO]]) {recompute.copy = 1 : i64, recompute.duplicated, recompute.segment = "block0", recompute.id = [[ID]] : i64}
// CHECK:       func.func private @scaled(%x: tensor<64xf32>, %k: tensor<64xf32>) -> tensor<64xf32> {
// CHECK-NEXT:    %two = stablehlo.constant dense<2.000000e+00>
// CHECK-NEXT:    %0 = stablehlo.multiply %x, %k : tensor<64xf32>
// CHECK-NEXT:    %1 = stablehlo.add %0, %two : tensor<64xf32>
// CHECK-NEXT:    func.return %1
// CHECK-NOT:   func.func

// -----

// The original call computes only the sine that is needed. The copy also computes the local derivative, by a call of
// the original function.
func.func @part(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a, %l = func.call @sine(%x) : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) loc("jit(s)/jvp(block0)/jit(sine)")
  %c = stablehlo.tanh %a : tensor<64xf32> loc("jit(s)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<64xf32> loc("jit(s)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<64xf32> loc("jit(s)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<64xf32> loc("jit(s)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %l : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<64xf32>, tensor<64xf32>
}
func.func private @sine(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = stablehlo.sine %x : tensor<64xf32> loc("sin")
  %1 = stablehlo.cosine %x : tensor<64xf32> loc("cos")
  func.return %0, %1 : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @part
// CHECK-NEXT:    [[A:%\w+]] = func.call @sine_1(%x)
// CHECK-NEXT:    stablehlo.tanh [[A]]
// CHECK:         func.call @sine({{.*}}recompute.copy = 1 : i64
// CHECK:       func.func private @sine(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
// CHECK:       func.func private @sine_1(%x: tensor<64xf32>) -> tensor<64xf32> {
// CHECK-NEXT:    %0 = stablehlo.sine %x : tensor<64xf32>
// CHECK-NEXT:    func.return %0

// -----

// A call of a function that another tool looks up by name is kept, between the same operations.
func.func @reserved(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = func.call @doubled(%x) : (tensor<64xf32>) -> tensor<64xf32> loc("jit(s)/jvp(block0)/jit(doubled)")
  %b = stablehlo.exponential %a : tensor<64xf32> loc("jit(s)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<64xf32> loc("jit(s)/jvp(block0)/tanh")
  %p = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%c) {has_side_effect = true} : (tensor<64xf32>) -> tensor<32xf32> loc("jit(s)/jvp(block1)/shard_map")
  %q = func.call @xla.sdy.manual_computation_body(%p) : (tensor<32xf32>) -> tensor<32xf32> loc("jit(s)/jvp(block1)/shard_map")
  %y = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%q) {has_side_effect = true} : (tensor<32xf32>) -> tensor<64xf32> loc("jit(s)/jvp(block1)/shard_map")
  %g = stablehlo.multiply %y, %c : tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<64xf32>, tensor<64xf32>
}
func.func private @doubled(%a: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.add %a, %a : tensor<64xf32> loc("add")
  %1 = stablehlo.tanh %0 : tensor<64xf32> loc("tanh")
  func.return %1 : tensor<64xf32>
}
func.func private @xla.sdy.manual_computation_body(%a: tensor<32xf32>) -> tensor<32xf32> {
  %0 = stablehlo.sine %a : tensor<32xf32> loc("sin")
  func.return %0 : tensor<32xf32>
}
// CHECK-LABEL: func.func @reserved
// CHECK-NEXT:    func.call @doubled(%x)
// CHECK:         [[PART:%\w+]] = stablehlo.custom_call @xla.sdy.GlobalToLocalShape
// CHECK-NEXT:    [[BODY:%\w+]] = func.call @xla.sdy.manual_computation_body([[PART]])
// CHECK-NEXT:    [[WHOLE:%\w+]] = stablehlo.custom_call @xla.sdy.LocalToGlobalShape([[BODY]])
// CHECK:         stablehlo.optimization_barrier
// CHECK-NEXT:    func.call @doubled({{%\w+}}) {{.*}}recompute.copy = 1
// CHECK:       func.func private @xla.sdy.manual_computation_body(
// CHECK-NEXT:    stablehlo.sine

// -----

// The operations that XLA expects around such a call move with it: no barrier separates them with the call as its gate.
func.func @apart(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(s)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<64xf32> loc("jit(s)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<64xf32> loc("jit(s)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<64xf32> loc("jit(s)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : tensor<64xf32> loc("jit(s)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : tensor<64xf32> loc("jit(s)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/mul")
  %p = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%g) {has_side_effect = true} : (tensor<64xf32>) -> tensor<32xf32> loc("jit(s)/transpose(jvp(block1))/shard_map")
  %q = func.call @xla.sdy.manual_computation_body(%p) : (tensor<32xf32>) -> tensor<32xf32> loc("jit(s)/transpose(jvp(block1))/shard_map")
  %h = stablehlo.multiply %b, %b : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %w = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%q) {has_side_effect = true} : (tensor<32xf32>) -> tensor<64xf32> loc("jit(s)/transpose(jvp(block1))/shard_map")
  %i = stablehlo.multiply %h, %w : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  %j = stablehlo.multiply %i, %a : tensor<64xf32> loc("jit(s)/transpose(jvp(block0))/mul")
  func.return %y, %j : tensor<64xf32>, tensor<64xf32>
}
func.func private @xla.sdy.manual_computation_body(%a: tensor<32xf32>) -> tensor<32xf32> {
  %0 = stablehlo.sine %a : tensor<32xf32> loc("sin")
  func.return %0 : tensor<32xf32>
}
// CHECK-LABEL: func.func @apart
// CHECK:         [[PART:%\w+]] = stablehlo.custom_call @xla.sdy.GlobalToLocalShape
// CHECK-NEXT:    [[BODY:%\w+]] = func.call @xla.sdy.manual_computation_body([[PART]])
// CHECK-NEXT:    [[WHOLE:%\w+]] = stablehlo.custom_call @xla.sdy.LocalToGlobalShape([[BODY]])
// CHECK-NEXT:    stablehlo.optimization_barrier %x, [[WHOLE]]
