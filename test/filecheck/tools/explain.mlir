// RUN: recompute-opt %s -t explain | filecheck %s
// RUN: recompute-opt %s -t 'explain{format=json}' | filecheck %s --check-prefix=JSON
// RUN: recompute-opt %s -t 'explain{cost=bytes}' | filecheck %s --check-prefix=BYTES
// RUN: recompute-opt %s -t 'explain{cost="roofline(h100)"}' | filecheck %s --check-prefix=TIME
// RUN: not recompute-opt %s -t 'explain{cost="roofline(gpu)"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: recompute-opt %s -t memory-timeline | filecheck %s --check-prefix=TIMELINE
// RUN: recompute-opt %s -t 'memory-timeline{format=json}' | filecheck %s --check-prefix=TIMELINE-JSON

// The explanation states the memory of the step, the saving and cost of each segment, and the reasons why segments are
// not recomputed. A tensor of this step has 4 KiB.
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
// CHECK-NEXT:   block1  4.0 KiB      0 B           0 B          0 (0.0%)       0  keep: the backward pass begins with these values

// An operation reads a tensor or two and writes one: 19 of 4096 bytes, at 3.35 TB/s, and 2 x 2 of them again.
// BYTES:        cost         by bytes: the step takes 7.782e+04 bytes
// BYTES:        extra bytes
// BYTES-NEXT:   block0  8.0 KiB  8.0 KiB           0 B  1.64e+04 (21.1%)       2  recompute
// TIME:         cost         by roofline(h100): the step takes 0.02324 us on h100
// TIME:         extra us on h100
// TIME-NEXT:    block0  8.0 KiB  8.0 KiB           0 B   0.00489 (21.1%)       2  recompute
// UNKNOWN:      unknown device 'gpu'; expected one of a100, h100, h200, mi300x, tpuv5e, cpu, or a device file whose name ends in .json

// JSON:      "peak_bytes": 16384,
// JSON:      "segment": "block0",
// JSON:      "freed_bytes": 8192,
// JSON:      "reason": null
// JSON:      "segment": "block1",
// JSON:      "reason": "the backward pass begins with these values

// JSON:      "values": [
// JSON-NEXT:   {
// JSON-NEXT:     "value": "%a",
// JSON:          "reason": null
// JSON:          "value": "%b",
// JSON:          "reason": null
// JSON:          "value": "%d",
// JSON-NEXT:     "operation": "stablehlo.sine",
// JSON:          "reason": "the backward pass begins with these values

// TIMELINE:      @step
// TIMELINE-NEXT: peak of temporaries  16.0 KiB
// TIMELINE:      device bytes         28.0 KiB
// TIMELINE:      alive at the peak
// TIMELINE-NEXT:   block0

// TIMELINE-JSON: "peak_bytes": 16384
