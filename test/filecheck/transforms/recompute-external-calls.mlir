// RUN: recompute-opt %s -p 'recompute{segments=none target=none}' | filecheck %s

// A call of a function without a body is an effect: it runs once, in order, and the step around it is recomputed and
// proved.
// CHECK: sym_name = "log", {{.*}} arg_attrs = [{my.kept}]
// CHECK: my.version = 1 : i32
func.func private @log(tensor<256xf32> {my.kept}) -> () attributes {my.version = 1 : i32}
func.func private @twice(%x: tensor<256xf32>) -> tensor<256xf32> {
  func.call @log(%x) : (tensor<256xf32>) -> ()
  %y = math.exp %x {recompute.recompute = true} : tensor<256xf32>
  func.call @log(%y) : (tensor<256xf32>) -> ()
  func.return %y : tensor<256xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    [[A:%\w+]] = math.sin %x
// CHECK-NEXT:    [[B:%\w+]] = func.call @twice([[A]])
// CHECK-NEXT:    [[C:%\w+]] = math.tanh [[B]]
// CHECK-NEXT:    func.call @log([[C]])
// CHECK-NEXT:    math.cos
// CHECK-NEXT:    [[G:%\w+]] = arith.mulf %ct, [[C]]
// CHECK-NEXT:    [[A2:%\w+]] = math.sin %x
// CHECK-NEXT:    [[B2:%\w+]] = math.exp [[A2]]
// CHECK-NEXT:    [[G2:%\w+]] = arith.mulf [[G]], [[B2]]
// CHECK-NEXT:    arith.mulf [[G2]], [[A2]]
// CHECK-NEXT:    func.return
func.func @step(%x: tensor<256xf32>, %ct: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %a = math.sin %x {recompute.recompute = true} : tensor<256xf32>
  %b = func.call @twice(%a) : (tensor<256xf32>) -> tensor<256xf32>
  %c = math.tanh %b : tensor<256xf32>
  func.call @log(%c) : (tensor<256xf32>) -> ()
  %d = math.cos %c : tensor<256xf32>
  %g = arith.mulf %ct, %c {recompute.phase = "gradient"} : tensor<256xf32>
  %g2 = arith.mulf %g, %b {recompute.phase = "gradient"} : tensor<256xf32>
  %g3 = arith.mulf %g2, %a {recompute.phase = "gradient"} : tensor<256xf32>
  func.return %d, %g3 : tensor<256xf32>, tensor<256xf32>
}
