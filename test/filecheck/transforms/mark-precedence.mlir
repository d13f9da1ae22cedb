// RUN: recompute-opt %s -p 'recompute-mark{segments=block0}' --split-input-file | filecheck %s

// A mark on an operation precedes its segment, both ways: %b is kept although it is inside, %c is recomputed although it
// is the segment's output.
func.func @marks(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.cosine %a {recompute.recompute = false} : tensor<64xf32> loc("jit(f)/jvp(block0)/cos")
  %c = stablehlo.tanh %b {recompute.recompute = true} : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.exponential %c : tensor<64xf32> loc("jit(f)/jvp(block1)/exp")
  %g = stablehlo.multiply %d, %d : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %c : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %b : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %j = stablehlo.multiply %i, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %d, %j : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @marks
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.cosine %a {recompute.recompute = false, recompute.segment = "block0", recompute.checkpoint}
// CHECK-NEXT:    %c = stablehlo.tanh %b {recompute.recompute = true, recompute.segment = "block0"}

// -----

// The outputs of segments are kept, and so are the values that the function returns.
func.func @outputs(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.cosine %a : tensor<64xf32> loc("jit(f)/jvp(block0)/cos")
  %c = stablehlo.tanh %a : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh")
  %r = stablehlo.negate %a : tensor<64xf32> loc("jit(f)/jvp(block0)/neg")
  %d = stablehlo.add %b, %c : tensor<64xf32> loc("jit(f)/jvp(block1)/add")
  %g = stablehlo.multiply %d, %d : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %d, %r, %h : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @outputs
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.cosine %a {recompute.segment = "block0", recompute.checkpoint}
// CHECK-NEXT:    %c = stablehlo.tanh %a {recompute.segment = "block0", recompute.checkpoint}
// CHECK-NEXT:    %r = stablehlo.negate %a {recompute.segment = "block0", recompute.checkpoint}

// -----

// A cheap view between recomputed operations is also recomputed, so that it does not pin the large value it views.
func.func @views(%x: tensor<64xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/sin")
  %v = stablehlo.reshape %a : (tensor<64xf32>) -> tensor<8x8xf32> loc("jit(f)/jvp(block0)/reshape")
  %c = stablehlo.tanh %v : tensor<8x8xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.exponential %c : tensor<8x8xf32> loc("jit(f)/jvp(block1)/exp")
  %g = stablehlo.multiply %d, %d : tensor<8x8xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %v : tensor<8x8xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %d, %h : tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block0", recompute.recompute = true}
// CHECK-NEXT:    %v = stablehlo.reshape %a {recompute.segment = "block0", recompute.recompute = true}
