// Numbers of every type in attributes, with signs, payloads and bounds.
module attributes {foo.nan = 0x7F800001 : f32, foo.big = 1.0e+300 : f64} {
  func.func @main() -> (f32, f16, tensor<2xf32>, tensor<3xi4>, tensor<2xcomplex<f32>>, tensor<0x3xf32>) {
    %a = arith.constant 0x7F800001 : f32
    %b = arith.constant 0x7C01 : f16
    %c = stablehlo.constant dense<[0x7FC00001, -0.0]> : tensor<2xf32>
    %d = stablehlo.constant dense<[-8, 7, 0]> : tensor<3xi4>
    %e = stablehlo.constant dense<[(1.0, -0.0), (0x7FC00002, 2.5)]> : tensor<2xcomplex<f32>>
    %f = stablehlo.constant dense<> : tensor<0x3xf32>
    "foo.numbers"() {a = 1 : i1, b = -1 : i8, c = 255 : ui8, d = -128 : si8, e = 9223372036854775807 : i64, f = 5 : index,
      g = 1.5 : bf16, h = 0x7F81 : bf16, i = 0xFFF8000000000001 : f64, j = -0.0 : f64, k = 0x7F : f8E4M3FN, l = true,
      m = 340282366920938463463374607431768211455 : i128, n = 0x0A : i8} : () -> ()
    "foo.arrays"() {a = array<i64: 1, -2>, b = array<f32: 1.0, -0.0>, d = [1, 2.0, "x", unit],
      e = dense<true> : tensor<4xi1>, f = dense<[1, 1]> : vector<2xi32>, g = dense<"0x01020304"> : tensor<4xi8>, i = array<i8>} : () -> ()
    return %a, %b, %c, %d, %e, %f : f32, f16, tensor<2xf32>, tensor<3xi4>, tensor<2xcomplex<f32>>, tensor<0x3xf32>
  }
}
