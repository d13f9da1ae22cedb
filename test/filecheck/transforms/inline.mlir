// RUN: recompute-opt %s -p recompute-inline --print-debuginfo --split-input-file --no-proof | filecheck %s

// The body of a private function replaces its call, and the call's path precedes the paths of the body.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/jvp(block0)/jit(twice)")
  func.return %0 : tensor<4xf32>
}
func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32> loc("add")
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    [[SUM:%\w+]] = stablehlo.add %x, %x : tensor<4xf32> loc([[LOC:#loc\d*]])
// CHECK-NEXT:    func.return [[SUM]]
// CHECK-NOT:   func.func private
// CHECK:       "jit(f)/jvp(block0)/jit(twice)/add"

// -----

// Calls inside loops, and calls in called functions, are inlined too.
func.func public @loop(%x: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%i = %x) : tensor<i32>
  cond {
    %limit = stablehlo.constant dense<5> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = func.call @outer(%i) : (tensor<i32>) -> tensor<i32>
    stablehlo.return %1 : tensor<i32>
  }
  func.return %0 : tensor<i32>
}
func.func private @outer(%a: tensor<i32>) -> tensor<i32> {
  %0 = func.call @inner(%a) : (tensor<i32>) -> tensor<i32>
  func.return %0 : tensor<i32>
}
func.func private @inner(%a: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.multiply %a, %a : tensor<i32>
  func.return %0 : tensor<i32>
}
// CHECK-LABEL: func.func public @loop
// CHECK:       do {
// CHECK-NEXT:    [[SQUARE:%\w+]] = stablehlo.multiply
// CHECK-NEXT:    stablehlo.return [[SQUARE]]
// CHECK-NOT:   func.call

// -----

// Public functions stay, because code outside the module may call them.
func.func public @entry(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @shared(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func public @shared(%a: tensor<4xf32>) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}
// CHECK-LABEL: func.func public @entry
// CHECK-NEXT:    func.call @shared

// -----

// A mark on a call applies to all operations of the function, unless an operation has a mark of its own.
func.func public @marked(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @two(%x) {recompute.recompute = true} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @two(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %a : tensor<4xf32>
  %1 = stablehlo.tanh %0 {recompute.recompute = false} : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @marked
// CHECK-NEXT:    stablehlo.sine {{.*}} {recompute.recompute = true}
// CHECK-NEXT:    stablehlo.tanh {{.*}} {recompute.recompute = false}

// -----

// The name of a call is added to the operations that compute its results; each call has its own name.
func.func public @named(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = func.call @layer(%x) {recompute.name = "first"} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %1:2 = func.call @layer(%0#1) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = stablehlo.cosine %0#0 : tensor<4xf32>
  // A result that is an argument is named at the operation that computes it, if there is one.
  %3 = func.call @itself(%2) {recompute.name = "same"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3, %1#1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @itself(%a: tensor<4xf32>) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}
func.func private @layer(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %a : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  %2 = stablehlo.tanh %1 {recompute.name = "out"} : tensor<4xf32>
  func.return %0, %2 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func public @named
// CHECK-NEXT:    stablehlo.sine %x {recompute.name = "first"}
// CHECK-NEXT:    stablehlo.negate {{%\w+}} : tensor
// CHECK-NEXT:    stablehlo.tanh {{%\w+}} {recompute.name = ["first", "out"]}
// CHECK-NEXT:    stablehlo.sine {{%\w+}} : tensor
// CHECK-NEXT:    stablehlo.negate {{%\w+}} : tensor
// CHECK-NEXT:    stablehlo.tanh {{%\w+}} {recompute.name = "out"}
// CHECK-NEXT:    stablehlo.cosine {{%\w+}} : tensor

// -----

// A function whose name another tool looks up is not inlined, nor are its calls in functions that are inlined.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @around(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @around(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<2xf32>
  %1 = func.call @xla.sdy.manual_computation_body.3(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%1) {has_side_effect = true} : (tensor<2xf32>) -> tensor<4xf32>
  %3 = func.call @xla.sdy.inlinable_manual_computation_body(%2) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
func.func private @xla.sdy.manual_computation_body.3(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @twice(%a) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
func.func private @xla.sdy.inlinable_manual_computation_body(%a: tensor<4xf32>) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}
func.func private @twice(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    [[PART:%\w+]] = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x)
// CHECK-NEXT:    [[BODY:%\w+]] = func.call @xla.sdy.manual_computation_body.3([[PART]])
// CHECK-NEXT:    [[WHOLE:%\w+]] = stablehlo.custom_call @xla.sdy.LocalToGlobalShape([[BODY]])
// CHECK-NEXT:    [[SAME:%\w+]] = func.call @xla.sdy.inlinable_manual_computation_body([[WHOLE]])
// CHECK-NEXT:    func.return [[SAME]]
// CHECK-NOT:   @around
// CHECK:       func.func private @xla.sdy.manual_computation_body.3
// CHECK-NEXT:    func.call @twice
// CHECK:       func.func private @xla.sdy.inlinable_manual_computation_body
// CHECK:       func.func private @twice

// -----

// Calls are not inlined if another tool has put an attribute on one of them or on the function: it would be lost.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @on_host(%x) {mhlo.frontend_attributes = {_xla_compute_type = "host"}} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @said(%0) {recompute.name = "here"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func private @said(%x: tensor<4xf32> {test.note}) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func private @on_host(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    [[HOST:%\w+]] = func.call @on_host(%x) {mhlo.frontend_attributes
// CHECK-NEXT:    [[SAID:%\w+]] = func.call @said([[HOST]])
// CHECK-NEXT:    func.return [[SAID]]
// CHECK:       func.func private @said
// CHECK:       func.func private @on_host

// -----

// Calls of a function that is marked are not inlined either, since the mark would be lost.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @marked(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @marked(%x: tensor<4xf32>) -> tensor<4xf32> attributes {recompute.whole} {
  func.return %x : tensor<4xf32>
}
// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    func.call @marked
// CHECK:       func.func private @marked{{.*}}recompute.whole

// -----

// A function that an attribute names is kept: the decomposition of a composite, or the function of a custom call.
func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.composite"(%x) {name = "my.twice", decomposition = @twice} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @sort(%x) {called_computations = [@less]} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @less(%x: tensor<f32>, %y: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  func.return %0 : tensor<i1>
}
func.func private @uncalled(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
// CHECK-LABEL: func.func public @main
// CHECK:       func.func private @twice
// CHECK:       func.func private @less
// CHECK-NOT:   @uncalled
