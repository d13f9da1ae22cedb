// RUN: recompute-opt %s -p recompute-mark --split-input-file --verify-diagnostics

// The attributes of an operation must not contradict each other; the message names the one to remove.
func.func @recomputed_and_kept(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{marked both to be recomputed (recompute.recompute = true) and to be kept (recompute.checkpoint): remove one mark}}
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.checkpoint} : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

func.func @marked_gradient(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{only forward operations can be recomputed: remove recompute.recompute, or correct recompute.phase}}
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.phase = "gradient"} : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

func.func @marked_copy(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{the operation is a copy (recompute.copy), and a copy cannot be recomputed again: remove recompute.recompute}}
  %a = stablehlo.sine %x {recompute.recompute = true, recompute.copy = 1, recompute.duplicated, recompute.id = 0} : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

func.func @outputs_of_an_operation(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{recompute.output_recompute is valid only on recompute.segment: mark the outputs with}}
  %a = stablehlo.sine %x {recompute.output_recompute} : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

func.func @kept_segment(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{marked to be kept (recompute.recompute = false), but its outputs are marked to be recomputed: remove one mark}}
  recompute.segment attributes {recompute.recompute = false, recompute.output_recompute} {
    recompute.yield
  }
  func.return %x : tensor<4xf32>
}

// -----

func.func @ill_typed(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{attribute 'recompute.recompute' must be true, false, a policy}}
  %a = stablehlo.sine %x {recompute.recompute = "prefer"} : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// The cost model needs the bytes of values, and a dynamic shape has no known size.
func.func @dynamic(%x: tensor<?xf32>, %ct: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  // expected-error@unknown {{the size in bytes of tensor<?xf32> is unknown; recomputation needs static shapes: lower the step for the largest shapes that must fit}}
  %a = stablehlo.sine %x : tensor<?xf32> loc("jit(f)/jvp(b)/sin")
  %b = stablehlo.tanh %a : tensor<?xf32> loc("jit(f)/jvp(b)/tanh")
  %g = stablehlo.multiply %ct, %b : tensor<?xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %a : tensor<?xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %b, %h : tensor<?xf32>, tensor<?xf32>
}

// -----

// expected-error@+1 {{function 'two_blocks' has 2 blocks; recomputation needs one block: express the control flow with stablehlo.while, stablehlo.case or scf}}
func.func @two_blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  "test.branch"() [^bb1] : () -> ()
^bb1:
  func.return %x : tensor<4xf32>
}
