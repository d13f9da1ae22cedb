// Floats that few tools can write.
module {
  func.func @main(%x: f80) -> f80 {
    "foo.numbers"() {o = 1.0 : f80, p = 2.0 : f128, q = 0.5 : tf32} : () -> ()
    return %x : f80
  }
}
