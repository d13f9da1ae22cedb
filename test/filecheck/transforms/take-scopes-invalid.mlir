// RUN: not recompute-opt %s -p recompute-take-scopes 2>&1 | filecheck %s

func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(recompute:block@3+outputs)/sin")
  func.return %0 : tensor<4xf32>
}
// CHECK: scope 'recompute:block@3+outputs': unknown switch 'outputs'; expected one of mp_comm_recompute, output_recompute
