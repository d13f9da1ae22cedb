// One report shows the step before and after on one scale, and the values at the peak by name and source position.

// RUN: recompute-opt %s -p recompute -t 'memory-timeline{before=%s}' | filecheck %s
// RUN: recompute-opt %s -p recompute -t 'memory-timeline{before=%s format=json}' | filecheck %s --check-prefix=JSON

func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x : tensor<1024xf32> loc("jit(f)/jvp(block0)/sin"("m.py":3:4))
  %b = stablehlo.exponential %a {recompute.name = "wide"} : tensor<1024xf32> loc("jit(f)/jvp(block0)/exp")
  %c = stablehlo.tanh %b : tensor<1024xf32> loc("jit(f)/jvp(block0)/tanh")
  %d = stablehlo.sine %c : tensor<1024xf32> loc("jit(f)/jvp(block1)/sin")
  %0 = stablehlo.exponential %d : tensor<1024xf32> loc("jit(f)/jvp(block1)/exp")
  %y = stablehlo.tanh %0 : tensor<1024xf32> loc("jit(f)/jvp(block1)/tanh")
  %g = stablehlo.multiply %0, %d : tensor<1024xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %b : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<1024xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}

// CHECK:      @step, before
// CHECK:      largest at the peak
// CHECK-NEXT:   %a {{ *}}stablehlo.sine {{ *}}block0  m.py:3:4  4.0 KiB  20.0 %
// CHECK-NEXT:   wide {{ *}}stablehlo.exponential {{ *}}block0 {{ *}}4.0 KiB  20.0 %
// CHECK-NEXT:   %d
// CHECK-NEXT:   jit(f)/jvp(block1)/exp {{ *}}stablehlo.exponential
// CHECK:      20.0 KiB
// CHECK:      @step, after
// CHECK:      peak of temporaries  16.0 KiB
// CHECK:        %a {{ *}}stablehlo.sine, recomputed {{ *}}block0  m.py:3:4  4.0 KiB  25.0 %
// CHECK:      20.0 KiB

// JSON: {"name": "step, before", "at_peak": {"largest": [{"name": "%a", "operation": "stablehlo.sine"
// JSON-SAME: "source": "m.py:3:4", "bytes": 4096, "share": 0.2}
// JSON-SAME: "peak_bytes": 20480
// JSON: {"name": "step, after"
