// Odd names, quoted symbols, names that xDSL uses itself.
module @"odd name" {
  func.func private @"f g"(%x: i32) -> i32 {
    %0 = "op_name__"(%x) {opname = "a"} : (i32) -> i32
    return %0 : i32
  }
  func.func private @f.g(%x: i32) -> i32 {
    %0 = "foo.op"(%x) <{k = 1 : i32}> {callee = @nothing, sym = "s", value = 1 : i32} : (i32) -> i32
    return %0 : i32
  }
  func.func @main(%arg0: i32, %_: i32, %x.y: i32) -> (i32, i32) {
    %0 = call @"f g"(%arg0) : (i32) -> i32
    %1 = call @f.g(%0) : (i32) -> i32
    %foo$bar = "a.b.c"(%1, %x.y) {"a b" = 1 : i32, "a.b" = 2 : i32, _ = 3 : i32, a$b = 4 : i32} : (i32, i32) -> i32
    %2:2 = "builtin.unrealized_conversion_cast"(%foo$bar, %_) : (i32, i32) -> (i32, i32)
    return %2#1, %2#0 : i32, i32
  }
}
