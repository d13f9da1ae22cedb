// Several blocks.
module {
  func.func @main(%x: i32, %flag: i1) -> i32 {
    cf.cond_br %flag, ^then(%x : i32), ^else
  ^then(%a: i32):
    %0 = arith.addi %a, %x : i32
    cf.br ^end(%0 : i32)
  ^else:
    "foo.effect"(%x) : (i32) -> ()
    cf.br ^end(%x : i32)
  ^end(%r: i32):
    return %r : i32
  }
  func.func @plain(%x: i32) -> i32 {
    return %x : i32
  }
}
