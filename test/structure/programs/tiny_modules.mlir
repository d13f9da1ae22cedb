// Nothing but what the outside sees: no name, an empty function, two that are the same.
module {
  func.func @empty() {
    return
  }
  func.func @same(%x: i32 {foo.a = "x"}) -> (i32 {foo.b}) {
    return %x : i32
  }
  func.func @twin(%x: i32) -> i32 attributes {foo.c = 1 : i64} {
    return %x : i32
  }
  func.func private @hidden(%x: i32) -> i32 {
    return %x : i32
  }
}
