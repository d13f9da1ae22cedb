// check: dead code
// request: regions=auto target=stablehlo
// Nobody reads %dead, but its operand %a counts as an output of block0 and is kept: nothing is recomputed. Without %dead
// the peak falls. The pipeline drops dead code only after it has decided; dead code counts in the peak before, too.
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = stablehlo.sine %x : tensor<64xf32> loc("jit(step)/jvp(block0)/sin")
  %b = stablehlo.tanh %a : tensor<64xf32> loc("jit(step)/jvp(block0)/tanh")
  %c = stablehlo.sine %b : tensor<64xf32> loc("jit(step)/jvp(block1)/sin")
  %d = stablehlo.tanh %c : tensor<64xf32> loc("jit(step)/jvp(block1)/tanh")
  %dead = stablehlo.tanh %a : tensor<64xf32> loc("jit(step)/jvp()/dead")
  %g = stablehlo.multiply %d, %d : tensor<64xf32> loc("jit(step)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %a : tensor<64xf32> loc("jit(step)/transpose(jvp(block0))/mul")
  func.return %h : tensor<64xf32>
}
