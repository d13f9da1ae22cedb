// RUN: recompute-opt %s | filecheck %s
// RUN: recompute-opt %s --print-op-generic | recompute-opt | filecheck %s

// Operations with regions round-trip as StableHLO prints them, and the symbol of a call in a loop is resolved.

// A body of one commutative operation is printed as its name, any other body as a region.
func.func @reduce(%a: tensor<4x5xf32>, %i: tensor<4x5xi32>, %z: tensor<f32>, %n: tensor<i32>) {
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0, 1] {note = "kept"} : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
  %1, %2 = stablehlo.reduce(%a init: %z), (%i init: %n) across dimensions = [1] : (tensor<4x5xf32>, tensor<4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
   reducer(%x: tensor<f32>, %x0: tensor<f32>) (%j: tensor<i32>, %j0: tensor<i32>) {
    %3 = stablehlo.add %x, %x0 : tensor<f32>
    %4 = stablehlo.minimum %j, %j0 : tensor<i32>
    stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
  }
  return
}
// CHECK-LABEL:  func.func @reduce(%a: tensor<4x5xf32>, %i: tensor<4x5xi32>, %z: tensor<f32>, %n: tensor<i32>) {
// CHECK-NEXT:     %0 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0, 1] {note = "kept"} : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
// CHECK-NEXT:     %1, %2 = stablehlo.reduce(%a init: %z), (%i init: %n) across dimensions = [1] : (tensor<4x5xf32>, tensor<4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
// CHECK-NEXT:      reducer(%x: tensor<f32>, %x0: tensor<f32>) (%j: tensor<i32>, %j0: tensor<i32>) {
// CHECK-NEXT:       %3 = stablehlo.add %x, %x0 : tensor<f32>
// CHECK-NEXT:       %4 = stablehlo.minimum %j, %j0 : tensor<i32>
// CHECK-NEXT:       stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }

// The carried values have the same names in both regions of a loop.
func.func @control(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
  stablehlo.optimization_barrier ()
  %0, %1 = stablehlo.optimization_barrier {note = "kept"} %n, %x : tensor<i32>, tensor<4xf32>
  %2, %3 = stablehlo.while(%iterArg = %0, %iterArg_1 = %1) : tensor<i32>, tensor<4xf32> attributes {note = "kept"}
  cond {
    %c = stablehlo.constant dense<5> : tensor<i32>
    %4 = stablehlo.compare LT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %5 = func.call @step(%iterArg_1) : (tensor<4xf32>) -> tensor<4xf32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %6 = stablehlo.add %iterArg, %c_1 : tensor<i32>
    stablehlo.return %6, %5 : tensor<i32>, tensor<4xf32>
  }
  return %2, %3 : tensor<i32>, tensor<4xf32>
}
func.func private @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// CHECK-LABEL:  func.func @control(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
// CHECK-NEXT:     stablehlo.optimization_barrier ()
// CHECK-NEXT:     %0, %1 = stablehlo.optimization_barrier {note = "kept"} %n, %x : tensor<i32>, tensor<4xf32>
// CHECK-NEXT:     %2, %3 = stablehlo.while(%iterArg = %0, %iterArg_1 = %1) : tensor<i32>, tensor<4xf32> attributes {note = "kept"}
// CHECK-NEXT:     cond {
// CHECK-NEXT:       %c = stablehlo.constant dense<5> : tensor<i32>
// CHECK-NEXT:       %4 = stablehlo.compare LT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:       stablehlo.return %4 : tensor<i1>
// CHECK-NEXT:     } do {
// CHECK-NEXT:       %5 = func.call @step(%iterArg_1) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:       %c_1 = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:       %6 = stablehlo.add %iterArg, %c_1 : tensor<i32>
// CHECK-NEXT:       stablehlo.return %6, %5 : tensor<i32>, tensor<4xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return %2, %3 : tensor<i32>, tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func private @step(%x: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:     func.return %x : tensor<4xf32>
// CHECK-NEXT:   }
