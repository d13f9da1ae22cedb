// check: copies
// request: segments=auto target=stablehlo
// The mark stands on a call, and was lost when the call was inlined. It is meant for what the call computes.
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = call @f(%x) {recompute.recompute = true} : (tensor<64xf32>) -> tensor<64xf32> loc("jit(step)/jvp()/jit(f)")
  %b = stablehlo.tanh %a : tensor<64xf32> loc("jit(step)/jvp()/tanh")
  %c = stablehlo.sine %b : tensor<64xf32> loc("jit(step)/jvp()/sin")
  %g = stablehlo.multiply %c, %c : tensor<64xf32> loc("jit(step)/transpose(jvp())/mul")
  %h = stablehlo.multiply %g, %a : tensor<64xf32> loc("jit(step)/transpose(jvp())/mul")
  func.return %h : tensor<64xf32>
}
func.func private @f(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = stablehlo.sine %x : tensor<64xf32> loc("sin")
  func.return %a : tensor<64xf32>
}
