// Attributes of every kind, on an operation and on a function, with keys that need quotes.
#map = affine_map<(d0, d1)[s0] -> (d0 + s0, d1 mod 2)>
#set = affine_set<(d0) : (d0 - 1 >= 0, d0 == 5)>
module @attributes {
  func.func @main(%x: tensor<4xf32> {foo.a = #map}) -> (tensor<4xf32> {foo.c = "r\22\\"}) attributes {foo.set = #set, "key with space" = 1 : i32} {
    %0 = "foo.op"(%x) <{inherent = #foo.kind<1>, other = i32}> {map = #map, set = #set, sym = @nobody::@inner, type = tensor<2x?xf32, #foo.enc>,
      dictionary = {z = 1 : i32, a = {b = [], c = {}}}, fn = (i32, tensor<f32>) -> (), nested = [[1 : i32], [2 : i32]],
      long = "tab\09 newline\0A quote\22 slash\5C end", empty = "", list = [], unit, layout = strided<[2, 1], offset: ?>,
      "0" = "zero", pretty = #foo.pair<[a, {b = c}], (d)>, vhlo = #vhlo.type_v1<!vhlo.i32_v1>} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.add %0, %x {mhlo.frontend_attributes = {k = "v"}, foo.x = dense<[1, 2]> : tensor<2xi64>, foo.y = 1.0 : f32} : tensor<4xf32>
    %2 = stablehlo.custom_call @foo(%1) {k = #vhlo.type_v1<!vhlo.i64_v1>, mhlo.sharding = "{devices=[2]0,1}", called_computations = []} : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) {mhlo.sharding = "a"} : (tensor<4xf32>) -> ()
  }
}
