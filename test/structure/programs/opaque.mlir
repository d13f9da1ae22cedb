// Attributes and types whose text only their dialect knows.
module {
  func.func @main(%x: !foo<"t > u">) -> !foo<"t > u"> {
    %0 = "foo.op"(%x) {a = #foo<"x > y">, b = #stablehlo<precision HIGH>, c = sparse<[[0, 1]], [5.0]> : tensor<2x2xf32>} : (!foo<"t > u">) -> !foo<"t > u">
    return %0 : !foo<"t > u">
  }
}
