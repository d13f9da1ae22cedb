// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// A call keeps its argument list as text. Results that are not computed have the type `none`.
func.func @call(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = "torch.aten.mm.default"(%x, %w) {torch.args = "%0, %1", torch.flops = 256 : i64, torch.node = "mm"} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1, %2 = "acme.pair"(%0) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, !torch.none)
  func.return %1 : tensor<8x4xf32>
}
// CHECK-LABEL: func.func @call
// CHECK-NEXT:    %0 = "torch.aten.mm.default"(%x, %w) {torch.args = "%0, %1", torch.flops = 256 : i64, torch.node = "mm"} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:    %1, %2 = "acme.pair"(%0) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, !torch.none)

// A complex number is written as an argument by its two parts, each with a decimal point.
func.func @complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = "torch.aten.mul.Scalar"(%x) {torch.args = "%0, complex(-0.0, inf)", torch.node = "mul"} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  func.return %0 : tensor<4xcomplex<f32>>
}
// CHECK-LABEL: func.func @complex
// CHECK-NEXT:    %0 = "torch.aten.mul.Scalar"(%x) {torch.args = "%0, complex(-0.0, inf)", torch.node = "mul"} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>

// A random operation is encoded as a draw of the state, and as a function of that state, which the argument list omits.
func.func @dropout(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = "torch.draw"() {torch.args = "%0, 0.1, True", torch.node = "drop", torch.of = "aten.native_dropout.default"} : () -> tensor<16xui8>
  %0, %1 = "torch.seeded.aten.native_dropout.default"(%s, %x) {torch.args = "%1, 0.1, True", torch.node = "drop"} : (tensor<16xui8>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>)
  func.return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func @dropout
// CHECK-NEXT:    %s = "torch.draw"() {torch.args = "%0, 0.1, True", torch.node = "drop", torch.of = "aten.native_dropout.default"} : () -> tensor<16xui8>
// CHECK-NEXT:    %0, %1 = "torch.seeded.aten.native_dropout.default"(%s, %x) {torch.args = "%1, 0.1, True", torch.node = "drop"}

// Strings, types, devices, lists and tuples may be arguments. A percent sign in a string does not refer to an operand.
func.func @arguments(%x: tensor<8xf32>) -> tensor<8xf32> {
  %v = "torch.read"(%x) {torch.node = "x"} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = "torch.aten.f.g"(%v) {torch.args = "[%0, None], -1e-05, (2,), inf, 'a%7', dtype=torch.float32, device=device('cpu')", torch.node = "f"} : (tensor<8xf32>) -> tensor<8xf32>
  func.return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func @arguments
// CHECK-NEXT:    %v = "torch.read"(%x)
// CHECK-NEXT:    %0 = "torch.aten.f.g"(%v) {torch.args = "[%0, None], -1e-05, (2,), inf, 'a%7', dtype=torch.float32, device=device('cpu')", torch.node = "f"}
