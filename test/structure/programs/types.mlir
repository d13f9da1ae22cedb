// Types of every kind, known and unknown.
module {
  func.func @main(%a: tuple<i32, tensor<2xf32>>, %b: tensor<?x4xf32, #stablehlo.bounds<8, ?>>, %c: !foo.box<i32, "x">, %d: vector<2x[4]xf32>,
      %e: tensor<*xf32>, %f: (i32) -> (i32, f32), %g: complex<f64>, %h: none, %i: tensor<2xf32, "encoding">, %j: !stablehlo.token) -> (!foo.box<i32, "x">, i32, tensor<2x?xindex>) {
    %0:2 = "foo.convert"(%a, %b, %c, %d, %e) : (tuple<i32, tensor<2xf32>>, tensor<?x4xf32, #stablehlo.bounds<8, ?>>, !foo.box<i32, "x">, vector<2x[4]xf32>, tensor<*xf32>) -> (i32, tensor<2x?xindex>)
    %1 = "foo.call"(%f, %g, %h, %i, %j) : ((i32) -> (i32, f32), complex<f64>, none, tensor<2xf32, "encoding">, !stablehlo.token) -> !foo.box<i32, "x">
    %2 = "foo.make"() : () -> (() -> ())
    %3 = "foo.ref"() : () -> memref<4x?xf32, strided<[?, 1]>, 3 : i32>
    %4 = "foo.take"(%2, %3) : (() -> (), memref<4x?xf32, strided<[?, 1]>, 3 : i32>) -> tensor<2xf8E5M2>
    %5 = "foo.deep"(%4) : (tensor<2xf8E5M2>) -> !foo<opaque "x">
    "foo.end"(%5) : (!foo<opaque "x">) -> ()
    return %1, %0#0, %0#1 : !foo.box<i32, "x">, i32, tensor<2x?xindex>
  }
}
