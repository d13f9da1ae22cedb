// RUN: recompute-opt %s -p recompute-inline-segments | filecheck %s
// RUN: recompute-opt %s -p recompute-inline-gradient,recompute-mark | filecheck %s --check-prefix=MARK

// The inside is marked to be recomputed; outputs, which forward operations read, are kept. A name in use gets a number.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "block", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.tanh %a {recompute.segment = "block", recompute.checkpoint}
// CHECK-NEXT:    %c = stablehlo.sine %b {recompute.segment = "block#1", recompute.recompute = true}
// CHECK-NEXT:    %d = stablehlo.tanh %c {recompute.segment = "block#1", recompute.checkpoint}
// CHECK-NEXT:    %y = stablehlo.negate %d :
// CHECK-NEXT:    %g = recompute.gradient
// MARK-LABEL: func.func @blocks
// MARK-NEXT:     %a = stablehlo.sine %x {recompute.segment = "block", recompute.recompute = true}
// MARK-NEXT:     %b = stablehlo.tanh %a {recompute.segment = "block", recompute.checkpoint}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a, %b = recompute.segment "block" {
    %a = stablehlo.sine %x : tensor<4xf32>
    %b = stablehlo.tanh %a : tensor<4xf32>
    recompute.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  %c, %d = recompute.segment "block" {
    %c = stablehlo.sine %b : tensor<4xf32>
    %d = stablehlo.tanh %c : tensor<4xf32>
    recompute.yield %c, %d : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  %y = stablehlo.negate %d : tensor<4xf32>
  %g = recompute.gradient {
    %g = stablehlo.multiply %y, %c : tensor<4xf32>
    %h = stablehlo.multiply %g, %a : tensor<4xf32>
    recompute.yield %h : tensor<4xf32>
  } : tensor<4xf32>
  func.return %g : tensor<4xf32>
}

// Returned values live to the end and are kept, unless `output_recompute` is set. Without a name the segment is
// "segment".
// CHECK-LABEL: func.func @outputs
// CHECK-NEXT:    stablehlo.sine %x {recompute.segment = "segment", recompute.checkpoint}
// CHECK-NEXT:    stablehlo.cosine %x {recompute.segment = "segment#1", recompute.recompute = true}
func.func @outputs(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = recompute.segment {
    %a = stablehlo.sine %x : tensor<4xf32>
    recompute.yield %a : tensor<4xf32>
  } : tensor<4xf32>
  %b = recompute.segment attributes {recompute.output_recompute} {
    %b = stablehlo.cosine %x : tensor<4xf32>
    recompute.yield %b : tensor<4xf32>
  } : tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// A mark on an operation precedes the innermost segment. `false` keeps an operation; paths are nested; instances
// differ.
// CHECK-LABEL: func.func @nested
// CHECK-NEXT:    %a = stablehlo.sine %x {recompute.segment = "m", recompute.recompute = true}
// CHECK-NEXT:    %b = stablehlo.tanh %a {recompute.segment = "m/attention", recompute.recompute = false}
// CHECK-NEXT:    %c = stablehlo.cosine %b {recompute.recompute = true, recompute.segment = "m/attention"}
// CHECK-NEXT:    %d = stablehlo.sine %c {recompute.segment = "m/attention#1", recompute.recompute = true}
// CHECK-NEXT:    %e = stablehlo.negate %d {recompute.recompute = false, recompute.segment = "m"}
// CHECK-NEXT:    %f = stablehlo.sine %e {recompute.segment = "m#1", recompute.recompute = true}
// CHECK-NEXT:    %h = stablehlo.tanh %f {recompute.segment = "m#1/attention", recompute.recompute = true}
func.func @nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = recompute.segment "m" attributes {recompute.output_recompute} {
    %a = stablehlo.sine %x : tensor<4xf32>
    %c = recompute.segment "attention" attributes {recompute.recompute = false} {
      %b = stablehlo.tanh %a : tensor<4xf32>
      %c = stablehlo.cosine %b {recompute.recompute = true} : tensor<4xf32>
      recompute.yield %c : tensor<4xf32>
    } : tensor<4xf32>
    %d = recompute.segment "attention" attributes {recompute.output_recompute} {
      %d = stablehlo.sine %c : tensor<4xf32>
      recompute.yield %d : tensor<4xf32>
    } : tensor<4xf32>
    %e = stablehlo.negate %d {recompute.recompute = false} : tensor<4xf32>
    recompute.yield %e : tensor<4xf32>
  } : tensor<4xf32>
  %h = recompute.segment "m" attributes {recompute.output_recompute} {
    %f = stablehlo.sine %e : tensor<4xf32>
    %h = recompute.segment "attention" attributes {recompute.output_recompute} {
      %h = stablehlo.tanh %f : tensor<4xf32>
      recompute.yield %h : tensor<4xf32>
    } : tensor<4xf32>
    recompute.yield %h : tensor<4xf32>
  } : tensor<4xf32>
  %g = recompute.gradient {
    %g = stablehlo.multiply %h, %e : tensor<4xf32>
    recompute.yield %g : tensor<4xf32>
  } : tensor<4xf32>
  func.return %g : tensor<4xf32>
}

// Operations that name their segment themselves belong to that segment.
// CHECK-LABEL: func.func @taken
// CHECK-NEXT:    stablehlo.sine %x {recompute.segment = "b"}
// CHECK-NEXT:    stablehlo.tanh %a {recompute.segment = "b#1", recompute.checkpoint}
func.func @taken(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x {recompute.segment = "b"} : tensor<4xf32>
  %b = recompute.segment "b" {
    %b = stablehlo.tanh %a : tensor<4xf32>
    recompute.yield %b : tensor<4xf32>
  } : tensor<4xf32>
  %g = recompute.gradient {
    %g = stablehlo.multiply %b, %a : tensor<4xf32>
    recompute.yield %g : tensor<4xf32>
  } : tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// The policy of a segment is written on its operations. A policy that saves also keeps the outputs.
// CHECK-LABEL: func.func @policies
// CHECK-NEXT:    stablehlo.sine %x {recompute.segment = "s", recompute.recompute = "prefer_save"}
// CHECK-NEXT:    stablehlo.cosine %x {recompute.segment = "t", recompute.recompute = "prefer_recompute"}
func.func @policies(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = recompute.segment "s" attributes {recompute.recompute = "prefer_save"} {
    %a = stablehlo.sine %x : tensor<4xf32>
    recompute.yield %a : tensor<4xf32>
  } : tensor<4xf32>
  %b = recompute.segment "t" attributes {recompute.recompute = "prefer_recompute"} {
    %b = stablehlo.cosine %x : tensor<4xf32>
    recompute.yield %b : tensor<4xf32>
  } : tensor<4xf32>
  %g = recompute.gradient {
    %g = stablehlo.multiply %a, %b : tensor<4xf32>
    recompute.yield %g : tensor<4xf32>
  } : tensor<4xf32>
  func.return %g : tensor<4xf32>
}

// The results of a segment are named after the operations that compute them, through nested segments.
// CHECK-LABEL: func.func @named
// CHECK-NEXT:    stablehlo.sine %x {recompute.name = "kept",
// CHECK-NEXT:    stablehlo.tanh {{%\w+}} {recompute.name = ["kept", "inner"],
// CHECK-NEXT:    stablehlo.negate
// CHECK-NOT:     recompute.name
func.func @named(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a, %c = recompute.segment attributes {recompute.name = "kept"} {
    %a = stablehlo.sine %x : tensor<4xf32>
    %b = recompute.segment attributes {recompute.name = "inner"} {
      %b = stablehlo.tanh %a : tensor<4xf32>
      recompute.yield %b : tensor<4xf32>
    } : tensor<4xf32>
    recompute.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  %y = stablehlo.negate %c : tensor<4xf32>
  %g = recompute.gradient {
    %g = stablehlo.multiply %y, %a : tensor<4xf32>
    recompute.yield %g : tensor<4xf32>
  } : tensor<4xf32>
  func.return %g : tensor<4xf32>
}
