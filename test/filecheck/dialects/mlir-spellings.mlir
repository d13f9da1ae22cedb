// RUN: recompute-opt %s --split-input-file | filecheck %s
// RUN: recompute-opt %s --split-input-file | recompute-opt --split-input-file | filecheck %s

// Strings that are not UTF-8 keep their bytes.
func.func @binary(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @kernel(%a) {api_version = 3 : i32, backend_config = "\00\90CB"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK-LABEL: @binary
// CHECK: backend_config = "\00\90CB"

// -----

// The line breaks of an attribute of an unknown dialect are kept, without added indentation.
func.func @lines(%a: tensor<2xf32, #other.layout<{
 rows = 1
}>>) -> tensor<2xf32, #other.layout<{
 rows = 1
}>> {
  func.return %a : tensor<2xf32, #other.layout<{
 rows = 1
}>>
}
// CHECK-LABEL: @lines(%a: tensor<2xf32, #other.layout<{
// CHECK:      func.return %a : tensor<2xf32, #other.layout<{
// CHECK-NEXT: {{^}} rows = 1
// CHECK-NEXT: {{^}}}>>

// -----

// An attribute of an unknown dialect may have types as keys, and an empty body.
module attributes {other.sizes = #other.sizes<i64 = 8, !llvm.ptr = 4>, other.set = #other.set<>, other.type = !other.none<>} {
}
// CHECK: attributes {other.sizes = #other.sizes<i64 = 8, !llvm.ptr = 4>, other.set = #other.set<>, other.type = !other.none<>}

// -----

// A sharding in a list may be written in full.
sdy.mesh @m = <["x"=2]>
func.func @sharded(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[#sdy.sharding<@m, [{"x"}]>]>} : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
// CHECK: sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>

// -----

func.func @any_rank(%a: tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) {
  %0:2 = chlo.top_k(%a, k = 8) : tensor<*xf32> -> (tensor<*xf32>, tensor<*xi32>)
  func.return %0#0, %0#1 : tensor<*xf32>, tensor<*xi32>
}
// CHECK: chlo.top_k(%a, k = 8) : tensor<*xf32> -> (tensor<*xf32>, tensor<*xi32>)

// -----

// `none` is the default of `overflowFlags`.
func.func @truncated(%a: i64) -> (i32, i32, i32) {
  %0 = "arith.trunci"(%a) <{overflowFlags = #arith.overflow<none>}> : (i64) -> i32
  %1 = arith.trunci %a overflow<nsw> : i64 to i32
  %2 = arith.trunci %a {other.tag} : i64 to i32
  func.return %0, %1, %2 : i32, i32, i32
}
// CHECK:      %0 = arith.trunci %a : i64 to i32
// CHECK-NEXT: %1 = arith.trunci %a {overflowFlags = #arith.overflow<nsw>} : i64 to i32
// CHECK-NEXT: %2 = arith.trunci %a {other.tag} : i64 to i32

// -----

func.func @reshaped(%a: tensor<128xf32>, %s: tensor<2xindex>) {
  %0 = tensor.reshape %a(%s) {other.tag} : (tensor<128xf32>, tensor<2xindex>) -> tensor<?x?xf32>
  %1 = "tensor.reshape"(%a, %s) : (tensor<128xf32>, tensor<2xindex>) -> tensor<8x16xf32>
  func.return
}
// CHECK:      "tensor.reshape"(%a, %s) {other.tag} : (tensor<128xf32>, tensor<2xindex>) -> tensor<?x?xf32>
// CHECK-NEXT: tensor.reshape %a(%s) : (tensor<128xf32>, tensor<2xindex>) -> tensor<8x16xf32>

// -----

// A single result type may be written without parentheses.
func.func @loop(%n: index, %c: i1, %x: f32) -> f32 {
  %0 = scf.for %i = %n to %n step %n iter_args(%a = %x) -> f32 {
    %1 = scf.if %c -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %1 : f32
  }
  func.return %0 : f32
}
// CHECK: scf.for %i = %n to %n step %n iter_args(%a = %x) -> (f32) {
// CHECK: scf.if %c -> (f32) {

// -----

// Attributes follow the operands where MLIR prints them, also if xDSL has no syntax for them.
func.func @attributes(%v: tensor<?xf32>, %c: index, %t: tensor<2x3xf32>, %u: tensor<3x2xf32>) {
  %e = tensor.empty() {recompute.phase = "primal"} : tensor<4xf32>
  %d = tensor.dim %v, %c {recompute.phase = "primal"} : tensor<?xf32>
  %r = linalg.transpose ins(%t : tensor<2x3xf32>) outs(%u : tensor<3x2xf32>) permutation = [1, 0] {recompute.phase = "primal"}
  func.return
}
// CHECK-LABEL: func.func @attributes
// CHECK:         "tensor.empty"() {recompute.phase = "primal"} : () -> tensor<4xf32>
// CHECK-NEXT:    "tensor.dim"(%v, %c) {recompute.phase = "primal"} : (tensor<?xf32>, index) -> index
// CHECK-NEXT:    "linalg.transpose"(%t, %u) <{permutation = array<i64: 1, 0>}>
