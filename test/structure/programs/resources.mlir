// Constants that lie in the section of resources at the end.
module {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %a = stablehlo.constant dense_resource<weights> : tensor<2xf32>
    %b = stablehlo.constant dense_resource<bias> : tensor<2xf32>
    %0 = stablehlo.multiply %x, %a : tensor<2xf32>
    %1 = stablehlo.add %0, %b : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F000000C0",
      bias: "0x040000000000003F0000003F"
    }
  }
#-}
