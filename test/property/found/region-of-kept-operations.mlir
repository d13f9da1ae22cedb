// check: pipeline
// request: segments=auto target=stablehlo
// Every operation of block0 is marked to be kept, and none is an output of it: there was no operation to report the
// segment at, and an IndexError.
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = stablehlo.sine %x {recompute.recompute = false} : tensor<64xf32> loc("jit(step)/jvp(block0)/sin")
  %b = stablehlo.tanh %x : tensor<64xf32> loc("jit(step)/jvp(block1)/tanh")
  %g = stablehlo.multiply %b, %b : tensor<64xf32> loc("jit(step)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %a : tensor<64xf32> loc("jit(step)/transpose(jvp(block0))/mul")
  func.return %h : tensor<64xf32>
}
