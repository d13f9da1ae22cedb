// RUN: recompute-opt %s -split-input-file -p cse -o %t.mlir
// RUN: recompute-check %s %t.mlir -split-input-file | filecheck %s --check-prefix=PROVED
// RUN: recompute-run --split-input-file %t.mlir | filecheck %s --check-prefix=RAN
// RUN: sed -e s/tanh/sine/ %t.mlir > %t.other.mlir
// RUN: not recompute-check --split-input-file %s %t.other.mlir | filecheck %s --check-prefix=DIFFERENT

func.func @first(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  %b = stablehlo.sine %x : tensor<4xf32>
  %c = stablehlo.add %a, %b : tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

func.func @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.tanh %x : tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// PROVED:       proved equal: 1 result, 5 operations before, 4 after
// PROVED-NEXT:  proved equal: 1 result, 3 operations before, 3 after
// RAN:     @first: 3 operations, 1 result
// RAN:     @second: 2 operations, 1 result
// DIFFERENT:      proved equal
// DIFFERENT-NEXT: not proved: result #0 of @second differs
