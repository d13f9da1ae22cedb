// check: dead code
// request: segments=auto target=stablehlo
// Nobody reads %dead, but its operand %a counted as an output of block0 and was kept. Dead code counted in the peak
// before, too. It has to go before anything is decided.
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
