// Memory: two buffers that are the same allocation or not, reads before and after writes.
module {
  func.func @main(%x: f32, %n: index) -> (f32, memref<4xf32>) {
    %c0 = arith.constant 0 : index
    %a = memref.alloc() : memref<4xf32>
    %b = memref.alloc() : memref<4xf32>
    memref.store %x, %a[%c0] : memref<4xf32>
    %u = memref.load %a[%c0] : memref<4xf32>
    memref.store %u, %b[%n] : memref<4xf32>
    %v = memref.load %a[%c0] : memref<4xf32>
    %w = memref.load %b[%n] : memref<4xf32>
    %s = arith.addf %u, %v : f32
    %t = arith.mulf %s, %w : f32
    %cast = memref.cast %b : memref<4xf32> to memref<?xf32>
    %d = memref.dim %cast, %c0 : memref<?xf32>
    %r = scf.while (%i = %c0) : (index) -> index {
      %p = arith.cmpi slt, %i, %d : index
      scf.condition(%p) %i : index
    } do {
    ^bb0(%j: index):
      %k = memref.load %a[%j] : memref<4xf32>
      "foo.use"(%k) : (f32) -> ()
      scf.yield %d : index
    }
    memref.dealloc %a : memref<4xf32>
    "foo.keep"(%r) : (index) -> ()
    return %t, %b : f32, memref<4xf32>
  }
}
