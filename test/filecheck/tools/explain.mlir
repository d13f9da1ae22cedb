// RUN: recompute-opt %s -t explain | filecheck %s
// RUN: recompute-opt %s -t 'explain{format=json}' | filecheck %s --check-prefix=JSON
// RUN: recompute-opt %s -t memory-timeline | filecheck %s --check-prefix=TIMELINE
// RUN: recompute-opt %s -t 'memory-timeline{format=json}' | filecheck %s --check-prefix=TIMELINE-JSON

// What the step holds, what each segment would free and cost, and why not where not. A tensor here is 4 KiB.
func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin")
  %b = stablehlo.exponential %a : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %y = stablehlo.tanh %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %d, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
// CHECK:      function @step
// CHECK-NEXT:   temporaries  16.0 KiB at their peak in program order, 20.0 KiB if operations start as soon as they can
// CHECK-NEXT:   device       28.0 KiB = arguments 4.0 KiB + results 8.0 KiB + temporaries - aliased 0 B
// CHECK-NEXT:   saved        12.0 KiB in 3 forward values that the backward pass reads, 0 B of it outside every segment
// CHECK:        operations   5 forward, 3 gradient, 0 copies, 0 tokens, 0 update; 0 saved values cross segments
// CHECK:        block0  8.0 KiB  8.0 KiB           0 B  2.05e+03 (25.0%)       2  recompute
// CHECK-NEXT:   block1  4.0 KiB      0 B           0 B          0 (0.0%)       0  keep: its values are needed as soon as

// JSON:      "peak_bytes": 16384,
// JSON:      "segment": "block0",
// JSON:      "freed_bytes": 8192,
// JSON:      "reason": null
// JSON:      "segment": "block1",
// JSON:      "reason": "its values are needed as soon as the backward pass begins

// JSON:      "values": [
// JSON-NEXT:   {
// JSON-NEXT:     "value": "%a",
// JSON:          "reason": null
// JSON:          "value": "%b",
// JSON:          "reason": null
// JSON:          "value": "%d",
// JSON-NEXT:     "operation": "stablehlo.sine",
// JSON:          "reason": "its values are needed as soon

// TIMELINE:      @step
// TIMELINE-NEXT: peak of temporaries  16.0 KiB
// TIMELINE:      device bytes         28.0 KiB
// TIMELINE:      alive at the peak
// TIMELINE-NEXT:   block0

// TIMELINE-JSON: "peak_bytes": 16384
