// RUN: recompute-opt %s -p recompute-inline -o %t.mlir
// RUN: filecheck %s --input-file %t.mlir
// RUN: recompute-check %s %t.mlir | filecheck %s --check-prefix=PROVED
// RUN: sed -e s/sine/cosine/ %t.mlir > %t.other.mlir
// RUN: recompute-check %s %t.other.mlir --expect not-proved | filecheck %s --check-prefix=DIFFERENT
// RUN: sed -e s/@second/@third/ %t.mlir > %t.renamed.mlir
// RUN: recompute-check %s %t.renamed.mlir --expect not-proved | filecheck %s --check-prefix=RENAMED
// RUN: sed -e 's/num_partitions = 1/num_partitions = 2/' %t.mlir > %t.attribute.mlir
// RUN: recompute-check %s %t.attribute.mlir --expect not-proved | filecheck %s --check-prefix=ATTRIBUTE
// RUN: recompute-run %s --function second::inner::main | filecheck %s --check-prefix=INNER
// RUN: not recompute-run %s 2>&1 | filecheck %s --check-prefix=ASKED
// RUN: recompute-opt %s -t memory-timeline | filecheck %s --check-prefix=TIMELINE
// RUN: recompute-run %t.mlir --function first::main | filecheck %s --check-prefix=INNER

// Passes run on each module with functions, and the proof compares the modules in pairs.

module @first {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
module @second attributes {mhlo.num_partitions = 1 : i32} {
  module @inner {
    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.sine %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
  }
}

// CHECK:      builtin.module @first {
// CHECK-NEXT:   func.func public @main
// CHECK-NEXT:     stablehlo.tanh %x
// CHECK-NOT:    @f
// CHECK:      builtin.module @second attributes {mhlo.num_partitions = 1 : i32} {
// CHECK-NEXT:   builtin.module @inner {
// CHECK-NEXT:     func.func public @main
// CHECK-NEXT:       stablehlo.sine %x

// PROVED:    proved equal: 2 results
// DIFFERENT: not proved: in module @second: in module @inner: result #0 of @main differs: before stablehlo.sine
// RENAMED:   not proved: in module @second: the name or an attribute of a module differs
// ATTRIBUTE: not proved: in module @second: the name or an attribute of a module differs
// INNER: @main: 2 operations, 1 result
// ASKED: error: the module has 2 public functions; name the one to run: first::main, second::inner::main
// TIMELINE: @first::main
// TIMELINE: @second::inner::main
