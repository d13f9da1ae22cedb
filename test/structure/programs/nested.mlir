// Modules in modules, declarations, globals in memory: symbols that are no functions with a body.
module @outer {
  memref.global "private" constant @data : memref<2xf32> = dense<[1.0, 2.0]>
  func.func private @declared(tensor<2xi32> {foo.x}) -> tensor<2xi32>
  module @nested attributes {foo.inside} {
    func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
      %0 = stablehlo.negate %x : tensor<2xi32>
      return %0 : tensor<2xi32>
    }
  }
  func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
    %0 = call @declared(%x) : (tensor<2xi32>) -> tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
