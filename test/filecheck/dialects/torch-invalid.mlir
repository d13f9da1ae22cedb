// RUN: recompute-opt %s --split-input-file --verify-diagnostics

func.func @name(%x: tensor<4xf32>) {
  // expected-error@+1 {{invalid operation name 'torch.aten.relu': expected the form torch.<namespace>.<operation>.<overload>}}
  %0 = "torch.aten.relu"(%x) {torch.args = "%0", torch.node = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @node(%x: tensor<4xf32>) {
  // expected-error@+1 {{'torch.node' must be a string, the name of an FX node}}
  %0 = "torch.aten.relu.default"(%x) {torch.args = "%0"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @operands(%x: tensor<4xf32>) {
  // expected-error@+1 {{'torch.args' refers to operand %0, but the call has operands %0, %1}}
  %0 = "torch.aten.add.Tensor"(%x, %x) {torch.args = "%0, 1", torch.node = "add"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// A random operation must have its state as an operand outside the argument list: otherwise a copy would draw
// other numbers.
func.func @state(%x: tensor<4xf32>) {
  // expected-error@+1 {{'torch.args' refers to operand %0, but the call has no operands}}
  %0 = "torch.seeded.aten.rand_like.default"(%x) {torch.args = "%0", torch.node = "rand"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @text(%x: tensor<4xf32>) {
  // expected-error@+1 {{'__import__' is not a valid argument: expected a literal, an operand such as %0, a list, or an object such as torch.float32}}
  %0 = "torch.aten.relu.default"(%x) {torch.args = "%0, __import__", torch.node = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @syntax(%x: tensor<4xf32>) {
  // expected-error@+1 {{is not a valid argument list: '(' was never closed; expected the arguments of one call}}
  %0 = "torch.aten.relu.default"(%x) {torch.args = "%0, (", torch.node = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @read(%x: tensor<4xf32>) {
  // expected-error@+1 {{torch.read must have one operand, and one result of the same type}}
  %0 = "torch.read"(%x) {torch.node = "x"} : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @draw() {
  // expected-error@+1 {{torch.draw must have no operands and one result, the state of the generator; 'torch.of' must name the operation that draws from this state}}
  %0 = "torch.draw"() {torch.node = "drop"} : () -> tensor<16xui8>
  func.return
}

// -----

func.func @complex(%x: tensor<4xcomplex<f32>>) {
  // expected-error@+1 {{'complex(1, 2)' is not a valid argument: both parts must be numbers with a decimal point}}
  %0 = "torch.aten.mul.Scalar"(%x) {torch.args = "%0, complex(1, 2)", torch.node = "mul"} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  func.return
}
