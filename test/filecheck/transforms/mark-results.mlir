// RUN: recompute-opt %s -p 'recompute-mark' 2> /dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-clone' --split-input-file | filecheck %s --check-prefix=CLONE

// A mark may have an entry for each result: the copy computes both, and the gradient reads the copy of the first and the
// kept second.
// CHECK: recompute.recompute = ["must_recompute", "must_save"]
// CLONE-LABEL: func.func @results
// CLONE:       [[S:%\w+]], {{.*}} = stablehlo.rng_bit_generator %state_1
// CLONE-NEXT:  %q = stablehlo.convert [[S]]
// CLONE-NEXT:  %i = stablehlo.multiply %h, %b
func.func @results(%x: tensor<64xf32>, %ct: tensor<64xf32>, %state: tensor<2xui64>) -> (tensor<64xf32>, tensor<64xf32>, tensor<2xf32>) {
  %s, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY {recompute.recompute = ["must_recompute", "must_save"]} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64xui32>) loc("jit(f)/jvp()/rng")
  %b = stablehlo.convert %bits {recompute.recompute = "must_save"} : (tensor<64xui32>) -> tensor<64xf32> loc("jit(f)/jvp()/convert")
  %a = stablehlo.multiply %x, %b : tensor<64xf32> loc("jit(f)/jvp()/mul")
  %h = stablehlo.multiply %ct, %a : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %q = stablehlo.convert %s : (tensor<2xui64>) -> tensor<2xf32> loc("jit(f)/transpose(jvp())/convert")
  %i = stablehlo.multiply %h, %b : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %a, %i, %q : tensor<64xf32>, tensor<64xf32>, tensor<2xf32>
}
