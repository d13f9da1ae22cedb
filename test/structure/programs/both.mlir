// The same key as property and as attribute, keys that xDSL uses itself.
module {
  func.func @main(%x: i32) -> i32 {
    %0 = "foo.op"(%x) <{k = 1 : i32}> {k = 2 : i32} : (i32) -> i32
    %1 = "foo.op"(%0) <{k = 3 : i32}> : (i32) -> i32
    %2 = "foo.op"(%1) {k = 3 : i32} : (i32) -> i32
    return %2 : i32
  }
  func.func @keys(%x: i32) -> i32 {
    %0 = "foo.op"(%x) {op_name = "b", sym_name = "c", value = 1 : i32, callee = @d} : (i32) -> i32
    return %0 : i32
  }
}
