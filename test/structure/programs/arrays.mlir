// Dense arrays of floats and truth values, locations as values of attributes.
module {
  func.func @main(%x: i32) -> i32 {
    %0 = "foo.arrays"(%x) {a = array<f32: 1.0, 0x7F800001>, b = array<i1: true, false>, c = array<f64: -0.0>} : (i32) -> i32
    return %0 : i32
  }
  func.func @places(%x: i32) -> i32 {
    %0 = "foo.places"(%x) {a = loc("here"), b = [loc("x":1:2), loc(unknown)]} : (i32) -> i32
    return %0 : i32
  }
}
