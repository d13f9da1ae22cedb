// Attributes that differ by being there twice, texts that are values of unknown types.
module {
  "foo.distinct"() {a = distinct[0]<1 : i32>, b = distinct[1]<1 : i32>, c = distinct[0]<1 : i32>} : () -> ()
  "foo.strings"() {a = dense<["a", "b"]> : tensor<2x!foo.string>} : () -> ()
  func.func @main() {
    return
  }
}
