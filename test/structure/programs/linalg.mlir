// linalg in generic form, as a dialect that the judge does not know.
module {
  func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xindex>) {
    %0 = "linalg.generic"(%x, %y) <{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 1, 1>}> ({
    ^bb0(%a: f32, %b: f32):
      %e = math.exp %a : f32
      %s = arith.addf %e, %b : f32
      "linalg.yield"(%s) : (f32) -> ()
    }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %i = tensor.empty() : tensor<4x4xindex>
    %1 = "linalg.generic"(%i) <{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>}> ({
    ^bb0(%b: index):
      %r = "linalg.index"() <{dim = 0 : i64}> : () -> index
      %c = "linalg.index"() <{dim = 1 : i64}> : () -> index
      %s = arith.subi %r, %c : index
      "linalg.yield"(%s) : (index) -> ()
    }) : (tensor<4x4xindex>) -> tensor<4x4xindex>
    return %0, %1 : tensor<4x4xf32>, tensor<4x4xindex>
  }
}
