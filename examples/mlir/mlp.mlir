// A training step of a multilayer perceptron in arith, math, linalg, tensor and func, with hand-written gradients.
//
//   a1 = x w1, h1 = tanh(a1), s1 = h1^2;  a2 = h1 w2, h2 = tanh(a2), s2 = h2^2;  y = h2 w3;  loss = sum((y - t)^2) / 2
//
// `1 - tanh^2` is computed in the forward pass, as in frameworks. `recompute.phase` marks the backward pass;
// `recompute.segment` and `recompute.recompute` select the recomputed operations. Run it:
//
//   recompute-opt mlp.mlir -p 'recompute{target=none}'
#row = affine_map<(d0, d1) -> (d0, d1)>
#all = affine_map<(d0, d1) -> ()>
#left = affine_map<(d0, d1, d2) -> (d0, d2)>
#left_transposed = affine_map<(d0, d1, d2) -> (d2, d0)>
#right = affine_map<(d0, d1, d2) -> (d2, d1)>
#right_transposed = affine_map<(d0, d1, d2) -> (d1, d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

!x = tensor<64x16xf32>
!w1 = tensor<16x32xf32>
!h = tensor<64x32xf32>
!w2 = tensor<32x32xf32>
!w3 = tensor<32x8xf32>
!y = tensor<64x8xf32>

func.func @step(%x: !x, %w1: !w1, %w2: !w2, %w3: !w3, %t: !y) -> (f32, !w1, !w2, !w3) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant dense<1.0> : !h
  %half = arith.constant 0.5 : f32
  %eh = tensor.empty() : !h
  %zh = linalg.fill ins(%zero : f32) outs(%eh : !h) -> !h
  %ey = tensor.empty() : !y
  %zy = linalg.fill ins(%zero : f32) outs(%ey : !y) -> !y

  // First layer.
  %a1 = linalg.matmul {recompute.segment = "layer1", recompute.recompute = true} ins(%x, %w1 : !x, !w1) outs(%zh : !h) -> !h
  %h1 = math.tanh %a1 {recompute.segment = "layer1"} : !h
  %s1 = arith.mulf %h1, %h1 {recompute.segment = "layer1", recompute.recompute = true} : !h
  %d1 = arith.subf %one, %s1 {recompute.segment = "layer1", recompute.recompute = true} : !h

  // Second layer.
  %a2 = linalg.matmul {recompute.segment = "layer2", recompute.recompute = true} ins(%h1, %w2 : !h, !w2) outs(%zh : !h) -> !h
  %h2 = math.tanh %a2 {recompute.segment = "layer2"} : !h
  %s2 = arith.mulf %h2, %h2 {recompute.segment = "layer2", recompute.recompute = true} : !h
  %d2 = arith.subf %one, %s2 {recompute.segment = "layer2", recompute.recompute = true} : !h

  // Loss.
  %y = linalg.matmul ins(%h2, %w3 : !h, !w3) outs(%zy : !y) -> !y
  %e = arith.subf %y, %t : !y
  %ee = arith.mulf %e, %e : !y
  %el = tensor.empty() : tensor<f32>
  %zl = linalg.fill ins(%zero : f32) outs(%el : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["reduction", "reduction"]} ins(%ee : !y) outs(%zl : tensor<f32>) {
  ^bb0(%element: f32, %running: f32):
    %next = arith.addf %running, %element : f32
    linalg.yield %next : f32
  } -> tensor<f32>
  %whole = tensor.extract %sum[] : tensor<f32>
  %loss = arith.mulf %whole, %half : f32

  // Gradients: of w3 and h2.
  %ew3 = tensor.empty() : !w3
  %zw3 = linalg.fill ins(%zero : f32) outs(%ew3 : !w3) -> !w3
  %gw3 = linalg.generic {indexing_maps = [#left_transposed, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h2, %e : !h, !y) outs(%zw3 : !w3) attrs = {recompute.phase = "gradient"} {
  ^bb0(%l: f32, %r: f32, %running: f32):
    %product = arith.mulf %l, %r : f32
    %next = arith.addf %running, %product : f32
    linalg.yield %next : f32
  } -> !w3
  %gh2 = linalg.generic {indexing_maps = [#left, #right_transposed, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e, %w3 : !y, !w3) outs(%zh : !h) attrs = {recompute.phase = "gradient"} {
  ^bb0(%l: f32, %r: f32, %running: f32):
    %product = arith.mulf %l, %r : f32
    %next = arith.addf %running, %product : f32
    linalg.yield %next : f32
  } -> !h

  // Of a2, w2 and h1.
  %ga2 = arith.mulf %gh2, %d2 {recompute.phase = "gradient"} : !h
  %ew2 = tensor.empty() : !w2
  %zw2 = linalg.fill ins(%zero : f32) outs(%ew2 : !w2) -> !w2
  %gw2 = linalg.generic {indexing_maps = [#left_transposed, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%h1, %ga2 : !h, !h) outs(%zw2 : !w2) attrs = {recompute.phase = "gradient"} {
  ^bb0(%l: f32, %r: f32, %running: f32):
    %product = arith.mulf %l, %r : f32
    %next = arith.addf %running, %product : f32
    linalg.yield %next : f32
  } -> !w2
  %gh1 = linalg.generic {indexing_maps = [#left, #right_transposed, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%ga2, %w2 : !h, !w2) outs(%zh : !h) attrs = {recompute.phase = "gradient"} {
  ^bb0(%l: f32, %r: f32, %running: f32):
    %product = arith.mulf %l, %r : f32
    %next = arith.addf %running, %product : f32
    linalg.yield %next : f32
  } -> !h

  // Of a1 and w1.
  %ga1 = arith.mulf %gh1, %d1 {recompute.phase = "gradient"} : !h
  %ew1 = tensor.empty() : !w1
  %zw1 = linalg.fill ins(%zero : f32) outs(%ew1 : !w1) -> !w1
  %gw1 = linalg.generic {indexing_maps = [#left_transposed, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %ga1 : !x, !h) outs(%zw1 : !w1) attrs = {recompute.phase = "gradient"} {
  ^bb0(%l: f32, %r: f32, %running: f32):
    %product = arith.mulf %l, %r : f32
    %next = arith.addf %running, %product : f32
    linalg.yield %next : f32
  } -> !w1
  func.return %loss, %gw1, %gw2, %gw3 : f32, !w1, !w2, !w3
}
