// RUN: recompute-opt %s -p 'recompute-mark,recompute-clone,recompute-shard-kept' --split-input-file 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file=%t

// The batch is sharded over `data`; saved values of the segment are sharded over `model` as well until they are read.
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func public @step(%x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %w: tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %ct: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %a = stablehlo.exponential %x : tensor<8x6xf32> loc("jit(f)/jvp()/exp")
  %s = stablehlo.sine %a {recompute.segment = "b", recompute.recompute_slice_activation = true} : tensor<8x6xf32> loc("jit(f)/jvp()/sin")
  %c = stablehlo.cosine %s {recompute.segment = "b"} : tensor<8x6xf32> loc("jit(f)/jvp()/cos")
  %y = stablehlo.tanh %c {recompute.segment = "b"} : tensor<8x6xf32> loc("jit(f)/jvp()/tanh")
  %z = stablehlo.negate %y : tensor<8x6xf32> loc("jit(f)/jvp()/neg")
  %g = stablehlo.multiply %ct, %z : tensor<8x6xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %c : tensor<8x6xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %h, %s : tensor<8x6xf32> loc("jit(f)/transpose(jvp())/mul")
  %j = stablehlo.multiply %i, %a : tensor<8x6xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %z, %j : tensor<8x6xf32>, tensor<8x6xf32>
}
// CHECK-LABEL: func.func public @step
// CHECK:         [[A:%\w+]] = stablehlo.exponential %x
// CHECK-NEXT:    [[K:%\w+]] = sdy.sharding_constraint [[A]] <@mesh, [{?}, {"model", ?}]> {recompute.shards_kept}
// CHECK-NEXT:    stablehlo.sine [[A]]
// CHECK:         recompute.depend [[K]] after

// -----

// A value stays as it is if no dimension except the first can be divided.
sdy.mesh @mesh = <["model"=2]>
func.func public @odd(%x: tensor<8x5xf32>, %ct: tensor<8x5xf32>) -> (tensor<8x5xf32>, tensor<8x5xf32>) {
  %a = stablehlo.exponential %x : tensor<8x5xf32> loc("jit(f)/jvp()/exp")
  %s = stablehlo.sine %a {recompute.segment = "b", recompute.recompute_slice_activation = true} : tensor<8x5xf32> loc("jit(f)/jvp()/sin")
  %c = stablehlo.cosine %s {recompute.segment = "b"} : tensor<8x5xf32> loc("jit(f)/jvp()/cos")
  %y = stablehlo.tanh %c {recompute.segment = "b"} : tensor<8x5xf32> loc("jit(f)/jvp()/tanh")
  %z = stablehlo.negate %y : tensor<8x5xf32> loc("jit(f)/jvp()/neg")
  %g = stablehlo.multiply %ct, %z : tensor<8x5xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %c : tensor<8x5xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %h, %s : tensor<8x5xf32> loc("jit(f)/transpose(jvp())/mul")
  %j = stablehlo.multiply %i, %a : tensor<8x5xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %z, %j : tensor<8x5xf32>, tensor<8x5xf32>
}
// CHECK-LABEL: func.func public @odd
// CHECK-NOT:     sharding_constraint
// REMARK:      the value is saved unsharded: no free axis of the mesh divides any of its dimensions after the first
