// RUN: recompute-opt %s -p 'recompute-mark{collectives=true}' 2> /dev/null | filecheck %s --check-prefix=ON
// RUN: recompute-opt %s -p 'recompute-mark' 2> /dev/null | filecheck %s --check-prefix=OFF
// RUN: recompute-opt %s -p 'recompute-mark{collectives=true},recompute-clone{collectives=true}' --no-proof 2> /dev/null | filecheck %s --check-prefix=CLONE
// RUN: recompute-opt %s -p 'recompute-mark{collectives=true},recompute-clone' 2>&1 > /dev/null | filecheck %s --check-prefix=REMARK

// A collective is repeated only if the options of both passes allow it, and its copy has a channel of its own. The proof
// does not accept a second communication, so such a step is written with --no-proof.
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp(cell)/sin")
  %n = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<64xf32>) -> tensor<64xf32> loc("jit(f)/jvp(cell)/all_gather")
  %e = stablehlo.exponential %n : tensor<64xf32> loc("jit(f)/jvp(cell)/exp")
  %b = stablehlo.tanh %e : tensor<64xf32> loc("jit(f)/jvp(cell)/tanh")
  %y = stablehlo.exponential %b : tensor<64xf32> loc("jit(f)/jvp(next)/exp")
  %g = stablehlo.multiply %ct, %y : tensor<64xf32> loc("jit(f)/transpose(jvp(next))/mul")
  %h = stablehlo.multiply %g, %e : tensor<64xf32> loc("jit(f)/transpose(jvp(cell))/mul")
  %i = stablehlo.multiply %h, %n : tensor<64xf32> loc("jit(f)/transpose(jvp(cell))/mul")
  %j = stablehlo.multiply %i, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(cell))/mul")
  func.return %y, %j : tensor<64xf32>, tensor<64xf32>
}
// ON:      %n = {{.*}}recompute.recompute = true
// OFF:     %a = {{.*}}recompute.recompute = true
// CLONE:   %n = "stablehlo.all_gather"(%a) {{.*}}handle = 1,
// CLONE:   "stablehlo.all_gather"({{.*}}handle = 2, {{.*}}recompute.copy = 1
// REMARK:  remark: stablehlo.all_gather is not recomputed: it is a collective, and recomputation of collectives is disabled
