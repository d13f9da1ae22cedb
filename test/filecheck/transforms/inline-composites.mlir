// RUN: recompute-opt %s -p recompute-inline-composites 2>&1 | filecheck %s

// A composite is replaced by the operations of its decomposition, and the proof states that it assumes them to be
// equal.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "acme.twice" %x {composite_attributes = {k = 1 : i32}, decomposition = @twice} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK:       remark: assuming, unverified, that these composites compute their decompositions: acme.twice
// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    [[SUM:%\w+]] = stablehlo.add %x, %x : tensor<4xf32>
// CHECK-NEXT:    func.return [[SUM]]
// CHECK-NOT:   func.func private
