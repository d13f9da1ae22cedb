// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Every operation may have the attributes of recompute. Tokens and depends round-trip.
func.func @ops(%x: tensor<4xf32>, %y: tensor<i32>, %ct: tensor<8xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %t = recompute.token %ct, %x {note = "kept"} : tensor<8xf32>, tensor<4xf32>
  %a, %b = recompute.depend %x, %y after %t : tensor<4xf32>, tensor<i32>
  %c = stablehlo.sine %a {recompute.copy = 1 : i64, recompute.duplicated, recompute.id = 7 : i64, recompute.segment = "m/b"} : tensor<4xf32>
  func.return %c, %b : tensor<4xf32>, tensor<i32>
}
// CHECK:      %t = recompute.token %ct, %x {note = "kept"} : tensor<8xf32>, tensor<4xf32>
// CHECK-NEXT: %a, %b = recompute.depend %x, %y after %t : tensor<4xf32>, tensor<i32>
// CHECK-NEXT: %c = stablehlo.sine %a {recompute.copy = 1 : i64, recompute.duplicated, recompute.id = 7 : i64, recompute.segment = "m/b"} : tensor<4xf32>
