// RUN: recompute-opt %s --split-input-file --verify-diagnostics

func.func @name(%x: tensor<4xf32>) {
  // expected-error@+1 {{operation names must have the form torch.<namespace>.<operation>.<overload>}}
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
  // expected-error@+1 {{'torch.args' uses the operands [0], expected [0, 1]}}
  %0 = "torch.aten.add.Tensor"(%x, %x) {torch.args = "%0, 1", torch.node = "add"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// A random operation must have its state as an operand outside the argument list: otherwise a copy would draw
// other numbers.
func.func @state(%x: tensor<4xf32>) {
  // expected-error@+1 {{'torch.args' uses the operands [0], expected []}}
  %0 = "torch.seeded.aten.rand_like.default"(%x) {torch.args = "%0", torch.node = "rand"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @text(%x: tensor<4xf32>) {
  // expected-error@+1 {{'__import__' cannot be an argument}}
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
  // expected-error@+1 {{the operation must return its operand}}
  %0 = "torch.read"(%x) {torch.node = "x"} : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @draw() {
  // expected-error@+1 {{the operation must have no operands and one result, a state; 'torch.of' must name the operation that draws from it}}
  %0 = "torch.draw"() {torch.node = "drop"} : () -> tensor<16xui8>
  func.return
}

// -----

func.func @complex(%x: tensor<4xcomplex<f32>>) {
  // expected-error@+1 {{'complex(1, 2)' cannot be an argument: expected two numbers with a decimal point}}
  %0 = "torch.aten.mul.Scalar"(%x) {torch.args = "%0, complex(1, 2)", torch.node = "mul"} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  func.return
}
