// arith, math, scf, tensor and memref; loops with effects in memory and without.
module {
  func.func @main(%n: index, %x: tensor<4xf32>, %m: memref<4xf32>, %flag: i1) -> (f32, tensor<4xf32>, i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 0.0 : f32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (f32) {
      %e = tensor.extract %x[%i] : tensor<4xf32>
      %s = math.sin %e : f32
      %a = arith.addf %acc, %s fastmath<contract> : f32
      scf.yield %a : f32
    }
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %m[%i] : memref<4xf32>
      %w = arith.mulf %v, %sum : f32
      memref.store %w, %m[%i] : memref<4xf32>
    }
    %y = tensor.insert %sum into %x[%c1] : tensor<4xf32>
    %k = scf.if %flag -> (i32) {
      %t = arith.constant 7 : i32
      scf.yield %t : i32
    } else {
      %t = arith.index_cast %n : index to i32
      %u = arith.addi %t, %t overflow<nsw> : i32
      scf.yield %u : i32
    }
    %cmp = arith.cmpi slt, %c0, %n : index
    scf.if %cmp {
      memref.store %z, %m[%c0] : memref<4xf32>
    }
    return %sum, %y, %k : f32, tensor<4xf32>, i32
  }
}
