// RUN: recompute-opt %s --split-input-file --verify-diagnostics

func.func @no_gate(%x: tensor<4xf32>) {
  // expected-error@+1 {{a token must have at least one operand, a gradient value to wait for}}
  %t = "recompute.token"() : () -> !recompute.token
  func.return
}

// -----

func.func @types(%x: tensor<4xf32>) {
  %t = recompute.token %x : tensor<4xf32>
  // expected-error@+1 {{result i of recompute.depend must have the type of value i}}
  %a = "recompute.depend"(%x, %t) : (tensor<4xf32>, !recompute.token) -> tensor<5xf32>
  func.return
}

// -----

func.func @counts(%x: tensor<4xf32>) {
  %t = recompute.token %x : tensor<4xf32>
  // expected-error@+1 {{result i of recompute.depend must have the type of value i}}
  %a, %b = "recompute.depend"(%x, %t) : (tensor<4xf32>, !recompute.token) -> (tensor<4xf32>, tensor<4xf32>)
  func.return
}

// -----

func.func @holds_nothing_back(%x: tensor<4xf32>) {
  %t = recompute.token %x : tensor<4xf32>
  // expected-error@+1 {{recompute.depend must have at least one value to delay}}
  "recompute.depend"(%t) : (!recompute.token) -> ()
  func.return
}

// -----

func.func @not_a_token(%x: tensor<4xf32>) {
  // expected-error@+1 {{tensor<4xf32> should be of base attribute recompute.token}}
  %a = "recompute.depend"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// A depend must be in the block of its token.
func.func @across_regions(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %t = recompute.token %x : tensor<4xf32>
  %a = "stablehlo.if"(%p) ({
    // expected-error@+1 {{a token orders the operations of one block: put recompute.token into the block of this recompute.depend}}
    %b = recompute.depend %x after %t : tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

func.func @out_of_a_region(%x: tensor<4xf32>, %p: tensor<i1>) {
  "stablehlo.if"(%p) ({
    %t = recompute.token %x : tensor<4xf32>
    stablehlo.return
  }, {
    stablehlo.return
  }) : (tensor<i1>) -> ()
  // expected-error@+1 {{%t is used but not defined}}
  %b = recompute.depend %x after %t : tensor<4xf32>
  func.return
}

// -----

func.func @argument(%x: tensor<4xf32>, %t: !recompute.token) {
  // expected-error@+1 {{a token must not be an argument: create it with recompute.token where it is needed}}
  %a = recompute.depend %x after %t : tensor<4xf32>
  func.return
}

// -----

// A token must not wait for an operation that waits for the token.
func.func @cycle(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand 0 of recompute.token is read before it is defined; a token must not wait for an operation that waits for the token}}
  %t = recompute.token %b : tensor<4xf32>
  %a = recompute.depend %x after %t : tensor<4xf32>
  %b = stablehlo.sine %a : tensor<4xf32>
  func.return
}

// -----

func.func @cycle_of_two(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand 1 of recompute.depend is read before it is defined; a token must not wait for an operation that waits for the token}}
  %a = recompute.depend %x after %u : tensor<4xf32>
  %t = recompute.token %a : tensor<4xf32>
  %b = recompute.depend %x after %t : tensor<4xf32>
  %u = recompute.token %b : tensor<4xf32>
  func.return
}
