// tensor, linalg inside scf, indices of nested loops, a switch.
module {
  func.func @main(%x: tensor<4x4xf32>, %i: index, %f: f32) -> (tensor<4x4xf32>, tensor<?xindex>, f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %0 = scf.for %k = %c0 to %c4 step %c1 iter_args(%t = %x) -> (tensor<4x4xf32>) {
      %1 = "linalg.generic"(%t) <{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>], operandSegmentSizes = array<i32: 0, 1>}> ({
      ^bb0(%b: f32):
        %r = "linalg.index"() <{dim = 0 : i64}> : () -> index
        %s = arith.addi %r, %k : index
        %u = arith.index_cast %s : index to i32
        %v = arith.sitofp %u : i32 to f32
        %w = arith.addf %v, %b : f32
        "linalg.yield"(%w) : (f32) -> ()
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      scf.yield %1 : tensor<4x4xf32>
    }
    %e = tensor.empty(%i) : tensor<?xindex>
    %g = "tensor.generate"(%i) ({
    ^bb0(%j: index):
      %m = arith.muli %j, %i : index
      "tensor.yield"(%m) : (index) -> ()
    }) : (index) -> tensor<?xindex>
    %y = tensor.insert %c1 into %g[%c0] : tensor<?xindex>
    %s = scf.index_switch %i -> f32
    case 0 {
      scf.yield %f : f32
    }
    case 3 {
      %h = arith.negf %f : f32
      scf.yield %h : f32
    }
    default {
      %q = tensor.extract %x[%c0, %c1] : tensor<4x4xf32>
      %d = arith.divf %q, %f : f32
      scf.yield %d : f32
    }
    return %0, %y, %s : tensor<4x4xf32>, tensor<?xindex>, f32
  }
}
