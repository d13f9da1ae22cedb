// RUN: recompute-opt %s -p 'recompute{target=none}' --split-input-file | filecheck %s

// With MindSpore's switches on a segment, its collectives may be repeated, except for the one that gathers a parameter.
func.func public @collectives(%x: tensor<8xf32>, %w: tensor<4xf32>, %ct: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %s, %g, %r, %y = recompute.segment "cell" attributes {recompute.mp_comm_recompute = true, recompute.parallel_optimizer_comm_recompute = false} {
    %s = stablehlo.sine %x : tensor<8xf32>
    %g = "stablehlo.all_gather"(%w) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<4xf32>) -> tensor<8xf32>
    %m = stablehlo.multiply %s, %g : tensor<8xf32>
    %r = "stablehlo.all_to_all"(%m) {concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>} : (tensor<8xf32>) -> tensor<8xf32>
    %y = stablehlo.tanh %r : tensor<8xf32>
    recompute.yield %s, %g, %r, %y : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  } : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  %z = stablehlo.negate %y : tensor<8xf32>
  %d = recompute.gradient {
    %a = stablehlo.multiply %ct, %y : tensor<8xf32>
    %b = stablehlo.multiply %a, %r : tensor<8xf32>
    %c = stablehlo.multiply %b, %g : tensor<8xf32>
    %d = stablehlo.multiply %c, %s : tensor<8xf32>
    recompute.yield %d : tensor<8xf32>
  } : tensor<8xf32>
  func.return %z, %d : tensor<8xf32>, tensor<8xf32>
}
// CHECK-LABEL: func.func public @collectives
// CHECK:         stablehlo.all_gather
// CHECK-SAME:    recompute.recompute = false
// CHECK:         stablehlo.all_to_all
// CHECK-SAME:    handle = 2
// CHECK-SAME:    recompute.repeatable
// CHECK:         recompute.gradient
// CHECK-NOT:     stablehlo.all_gather
// CHECK:         stablehlo.all_to_all
// CHECK-SAME:    handle = 3
// CHECK-NOT:     stablehlo.all_gather

// -----

// The checkpoints in a step's attributes divide it, as Paddle's `_set_checkpoints` does.
func.func public @checkpoints(%x: tensor<1024xf32>, %ct: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) attributes {recompute.checkpoints = ["h0"]} {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp()/sin")
  %b = stablehlo.cosine %a : tensor<1024xf32> loc("jit(f)/jvp()/cos")
  %h0 = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp()/tanh")
  %y = stablehlo.exponential %h0 : tensor<1024xf32> loc("jit(f)/jvp()/exp")
  %f = stablehlo.multiply %ct, %y : tensor<1024xf32> loc("jit(f)/transpose(jvp())/mul")
  %g = stablehlo.multiply %f, %h0 : tensor<1024xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp())/mul")
  %j = stablehlo.multiply %i, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %j : tensor<1024xf32>, tensor<1024xf32>
}
// CHECK-LABEL: func.func public @checkpoints
// CHECK:         stablehlo.tanh
// CHECK-SAME:    recompute.checkpoint
// CHECK:         stablehlo.multiply
// CHECK:         stablehlo.sine %x
// CHECK-SAME:    recompute.duplicated
// CHECK-NOT:     stablehlo.tanh
