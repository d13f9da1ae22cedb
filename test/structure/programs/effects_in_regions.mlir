// Effects inside loops, branches and groups, before, between and after effects outside.
module {
  func.func private @log(%x: tensor<f32>) {
    stablehlo.custom_call @log(%x) {has_side_effect = true} : (tensor<f32>) -> ()
    return
  }
  func.func @main(%x: tensor<f32>, %n: tensor<i32>, %p: tensor<i1>) -> (tensor<f32>, tensor<i32>) {
    call @log(%x) : (tensor<f32>) -> ()
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %w:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<f32>
     cond {
      stablehlo.custom_call @test(%v) {has_side_effect = true} : (tensor<f32>) -> ()
      %lt = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    } do {
      func.call @log(%v) : (tensor<f32>) -> ()
      %next = stablehlo.add %i, %one : tensor<i32>
      %t = stablehlo.tanh %v : tensor<f32>
      stablehlo.return %next, %t : tensor<i32>, tensor<f32>
    }
    %c = "stablehlo.if"(%p) ({
      func.call @log(%w#1) : (tensor<f32>) -> ()
      stablehlo.return %x : tensor<f32>
    }, {
      stablehlo.custom_call @other(%x) {has_side_effect = true} : (tensor<f32>) -> ()
      stablehlo.return %w#1 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    "recompute.segment"() ({
      stablehlo.custom_call @log(%c) {has_side_effect = true} : (tensor<f32>) -> ()
      "recompute.yield"() : () -> ()
    }) : () -> ()
    %g = "recompute.gradient"() ({
      stablehlo.custom_call @grad(%c) {has_side_effect = true} : (tensor<f32>) -> ()
      %s = stablehlo.sine %c : tensor<f32>
      "recompute.yield"(%s) {foo.end} : (tensor<f32>) -> ()
    }) {foo.group = "g"} : () -> tensor<f32>
    return %g, %w#0 : tensor<f32>, tensor<i32>
  }
}
