// Values of attributes that are easily mixed up.
module attributes {foo.a = 1 : index, foo.b = [true, 1 : i1], foo.c = "@f"} {
  "foo.values"() {a = @f, b = "f", c = unit, d = true, e = "unit", f = i32, g = "i32", h = [], i = {}, j = [[]], k = [{}], l = @f::@g, m = "@f::@g"} : () -> ()
  "foo.numbers"() {a = 1 : i64, b = 1 : si64, c = 1 : ui64, d = 1.0 : f64, e = 1.0 : f32, f = 1 : index, g = dense<1> : tensor<i64>, h = dense<1> : tensor<1xi64>, i = array<i64: 1>, j = dense<1> : vector<1xi64>} : () -> ()
  "foo.maps"() {a = affine_map<() -> ()>, b = affine_map<(d0) -> ()>, c = affine_map<(d0, d1) -> (d1, d0)>, d = affine_map<(d0)[s0] -> (d0 floordiv 2 + s0 * 3, d0 ceildiv 4)>, e = affine_map<(d0) -> (-d0)>} : () -> ()
  "foo.strings"() {a = "", b = "\00", c = "a\00b", d = "a\0Ab", e = "\C3\BC", f = "tab\09", g = "\22q\22", h = "\\5C"} : () -> ()
  "foo.dense"() {a = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>, b = dense<"0x01020304"> : tensor<2x2xi8>, c = dense<[true, false]> : tensor<2xi1>, d = dense<(0.0, -0.0)> : tensor<2xcomplex<f32>>, f = dense<0xFF800000> : tensor<2xf32>, g = dense<> : tensor<0xf32>} : () -> ()
  func.func @main() {
    return
  }
}
