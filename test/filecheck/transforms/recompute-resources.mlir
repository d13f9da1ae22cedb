// RUN: recompute-opt %s -p 'recompute{segments=none target=none}' | filecheck %s
// RUN: recompute-opt %s -p 'recompute{segments=none target=none}' | recompute-check %s - | filecheck %s --check-prefix PROOF

// PROOF: proved equal: 2 results

// The written step has the content of its resources, with which the proof compares them. A name that an earlier text in
// the process has is changed.
// CHECK:      stablehlo.constant dense_resource<[[K:[\w.]+]]> : tensor<2xf32>
// CHECK:      arith.constant dense_resource<[[W:[\w.]+]]>
// CHECK:      stablehlo.sine
// CHECK:      stablehlo.sine
// CHECK:      {-#
// CHECK-NEXT:   dialect_resources: {
// CHECK-NEXT:     builtin: {
// CHECK-NEXT:       [[K]]: "0x040000000000803F0000803F",[[W]]: "0x040000000000004000000040"
func.func @step(%x: tensor<2xf32>, %ct: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %k = stablehlo.constant dense_resource<k> : tensor<2xf32>
  %w = arith.constant dense_resource<torch_tensor_2_torch.float32> : tensor<2xf32>
  %a = stablehlo.sine %x {recompute.recompute = true} : tensor<2xf32>
  %b = stablehlo.exponential %a {recompute.recompute = true} : tensor<2xf32>
  %c = stablehlo.add %b, %w : tensor<2xf32>
  %g = stablehlo.multiply %ct, %k {recompute.phase = "gradient"} : tensor<2xf32>
  %g2 = stablehlo.multiply %g, %b {recompute.phase = "gradient"} : tensor<2xf32>
  %g3 = stablehlo.multiply %g2, %a {recompute.phase = "gradient"} : tensor<2xf32>
  func.return %c, %g3 : tensor<2xf32>, tensor<2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      k: "0x040000000000803F0000803F",
      torch_tensor_2_torch.float32: "0x040000000000004000000040"
    }
  }
#-}
