// RUN: recompute-opt %s -p 'recompute-mark{checkpoints=%h0,h1}' --no-proof 2> %t.remarks | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file %t.remarks
// RUN: recompute-opt %s -p 'recompute-mark{checkpoints=h1,h0,h1}' 2> /dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute-mark{checkpoints=exp0/exponential,tanh}' 2> /dev/null | filecheck %s --check-prefix=PLACE

// A segment contains the operations that lead to a checkpoint and not to an earlier one; the order of the names does not
// matter. %h0 and %h1 are kept, %d and %y follow the last checkpoint. The second segment reads %a: it is saved, with a remark.
func.func @step(%x: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %s = stablehlo.sine %x : tensor<64xf32> loc("jit(f)/jvp()/sine")
  %a = stablehlo.cosine %s : tensor<64xf32> loc("jit(f)/jvp()/cosine"("net.py":3:5))
  %h0 = stablehlo.exponential %a : tensor<64xf32> loc("jit(f)/jvp(exp0)/exponential")
  %b = stablehlo.sine %h0 : tensor<64xf32> loc("jit(f)/jvp()/sine")
  %c = stablehlo.add %b, %a : tensor<64xf32> loc("jit(f)/jvp()/add")
  %h1 = stablehlo.tanh %c : tensor<64xf32> loc("jit(f)/jvp()/tanh")
  %d = stablehlo.cosine %h1 : tensor<64xf32> loc("jit(f)/jvp()/cosine")
  %y = stablehlo.sine %d : tensor<64xf32> loc("jit(f)/jvp()/sine")
  %f = stablehlo.multiply %ct, %d : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %g = stablehlo.multiply %f, %h1 : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %c : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %h, %b : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %j = stablehlo.multiply %i, %a : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  %k = stablehlo.multiply %j, %s : tensor<64xf32> loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %k : tensor<64xf32>, tensor<64xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    %s = stablehlo.sine %x {recompute.segment = "segment0", recompute.recompute = true}
// CHECK-NEXT:    %a = stablehlo.cosine %s {recompute.segment = "segment0", recompute.checkpoint}
// CHECK-NEXT:    %h0 = stablehlo.exponential %a {recompute.segment = "segment0", recompute.checkpoint}
// CHECK-NEXT:    %b = stablehlo.sine %h0 {recompute.segment = "segment1", recompute.recompute = true}
// CHECK-NEXT:    %c = stablehlo.add %b, %a {recompute.segment = "segment1", recompute.recompute = true}
// CHECK-NEXT:    %h1 = stablehlo.tanh %c {recompute.segment = "segment1", recompute.checkpoint}
// CHECK-NEXT:    %d = stablehlo.cosine %h1 :
// CHECK-NEXT:    %y = stablehlo.sine %d :
// REMARK: net.py:3:5: remark: stablehlo.cosine of segment 'segment0' is saved: it is not a checkpoint, but operations of another segment read it

// A checkpoint can also be named by its scope and operation, or by the last part of its path.
// PLACE:       %h0 = stablehlo.exponential %a {recompute.segment = "segment0", recompute.checkpoint}
// PLACE:       %h1 = stablehlo.tanh %c {recompute.segment = "segment1", recompute.checkpoint}
