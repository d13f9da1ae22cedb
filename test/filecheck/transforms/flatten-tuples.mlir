// RUN: recompute-opt %s -p recompute-flatten-tuples --split-input-file 2>&1 | filecheck %s

// A function that returns a tuple returns its elements instead, and reads of elements are replaced by the elements.
func.func public @main(%a: tensor<f32>, %b: tensor<2xf32>) -> tuple<tensor<f32>, tensor<2xf32>> {
  %t = stablehlo.tuple %a, %b : tuple<tensor<f32>, tensor<2xf32>>
  %c = stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<2xf32>>) -> tensor<2xf32>
  %d = stablehlo.add %c, %c : tensor<2xf32>
  %u = stablehlo.tuple %a, %d : tuple<tensor<f32>, tensor<2xf32>>
  func.return %u : tuple<tensor<f32>, tensor<2xf32>>
}
// CHECK:       remark: assuming that callers take the elements of tuples: 1
// CHECK-LABEL: func.func public @main(%a: tensor<f32>, %b: tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>) {
// CHECK-NEXT:    [[D:%\w+]] = stablehlo.add %b, %b : tensor<2xf32>
// CHECK-NEXT:    func.return %a, [[D]] : tensor<f32>, tensor<2xf32>

// -----

// A function that is called keeps its tuple, and a tuple with an attribute of another tool is kept.
func.func public @caller(%a: tensor<f32>) -> tensor<f32> {
  %t = func.call @callee(%a) : (tensor<f32>) -> tuple<tensor<f32>>
  %c = stablehlo.get_tuple_element %t[0] : (tuple<tensor<f32>>) -> tensor<f32>
  func.return %c : tensor<f32>
}
func.func private @callee(%a: tensor<f32>) -> tuple<tensor<f32>> {
  %t = stablehlo.tuple %a {mhlo.sharding = "{replicated}"} : tuple<tensor<f32>>
  func.return %t : tuple<tensor<f32>>
}
// CHECK-LABEL: func.func public @caller
// CHECK:         stablehlo.get_tuple_element
// CHECK:       func.func private @callee(%a: tensor<f32>) -> tuple<tensor<f32>> {
// CHECK-NEXT:    [[T:%\w+]] = stablehlo.tuple %a {mhlo.sharding = "{replicated}"} : tuple<tensor<f32>>
