// What may stand beside functions: symbols, globals, unknown operations.
module @top attributes {foo.version = 3 : i32, mhlo.num_replicas = 1 : i32} {
  "foo.global"() <{sym_name = "table", value = dense<[1, 2]> : tensor<2xi32>}> : () -> ()
  %0 = "foo.value"() : () -> i32
  "foo.region"(%0) ({
    %1 = "foo.inner"(%0) : (i32) -> i32
    "foo.done"() : () -> ()
  }) : (i32) -> ()
  func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
    %1 = "foo.load"() {from = @table} : () -> tensor<2xi32>
    %2 = stablehlo.add %1, %x : tensor<2xi32>
    return %2 : tensor<2xi32>
  }
  "foo.after"() : () -> ()
}
