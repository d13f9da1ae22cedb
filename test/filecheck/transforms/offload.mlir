// RUN: recompute-opt %s -p recompute-offload 2>/dev/null | filecheck %s
// RUN: recompute-opt %s -p 'recompute{offload=marked}' 2>/dev/null | filecheck %s --check-prefix=MOVED
// RUN: recompute-opt %s -p 'recompute-offload,recompute-clone,recompute-cse,recompute-lower' 2>/dev/null | filecheck %s --check-prefix=MOVED
// RUN: xdsl-opt %s -p 'recompute{offload=marked}' 2>/dev/null | filecheck %s --check-prefix=MOVED
// RUN: recompute-opt %s -p recompute-offload,recompute-cse 2>/dev/null | filecheck %s --check-prefix=WITHDRAWN
// RUN: recompute-opt %s -p 'recompute{offload=marked target=none}' 2>/dev/null | filecheck %s --check-prefix=ORDER
// RUN: recompute-opt %s -p 'recompute{offload=marked}' 2>&1 >/dev/null | filecheck %s --check-prefix=REMARK
// RUN: recompute-opt %s -p recompute 2>/dev/null | filecheck %s --check-prefix=WITHDRAWN
// RUN: not recompute-opt %s -p 'recompute{offload=everything}' 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not recompute-opt %s -p 'recompute{budget=50% offload=auto}' 2>&1 | filecheck %s --check-prefix=COST
// RUN: not recompute-opt %s -p 'recompute{budget=50% offload=auto cost=roofline(tpuv5e)}' 2>&1 | filecheck %s --check-prefix=SPEED
// RUN: not recompute-opt %s -p 'recompute{budget=50% offload=auto cost=roofline(h100)}' 2>&1 | filecheck %s --check-prefix=MODEL

// A marked value is moved to the host after its definition, and back once its gradient is available. No operation reads
// it in between; once the offers are removed, forward operations read the value itself.

// CHECK:      %a = stablehlo.sine %x
// CHECK-NEXT: [[H:%\w+]] = stablehlo.custom_call @annotate_device_placement(%a) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}, recompute.offload = 0 : i64
// CHECK-NEXT: [[D:%\w+]] = stablehlo.custom_call @annotate_device_placement([[H]]) {{.*}}_xla_buffer_placement = "device"{{.*}}recompute.recompute = true
// CHECK-NEXT: stablehlo.exponential [[D]]

// MOVED:      [[A:%\w+]] = stablehlo.sine %x
// MOVED-NEXT: [[H:%\w+]] = stablehlo.custom_call @annotate_device_placement([[A]]) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}
// MOVED-NEXT: stablehlo.exponential [[A]]
// MOVED:      [[W:%\w+]], [[G:%\w+]] = stablehlo.optimization_barrier {{.*}}[[H]],
// MOVED-NEXT: [[B:%\w+]] = stablehlo.custom_call @annotate_device_placement([[W]]) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}
// MOVED-NEXT: stablehlo.multiply [[G]], [[B]]

// WITHDRAWN-NOT: custom_call

// ORDER:      [[H:%\w+]] = stablehlo.custom_call @annotate_device_placement
// ORDER-NOT:  optimization_barrier
// ORDER:      stablehlo.custom_call @annotate_device_placement([[H]])

// REMARK:     offload.mlir:{{.*}}'offload' has no effect here: no gradient operation reads the value
// REMARK-NOT: it moves its operand to the host

// BAD:   offload must be marked, auto, or a speed such as 25GB/s, not 'everything'
// COST:  offload=auto compares transfers and work in seconds: give a device, for example cost=roofline(h100)
// SPEED: the transfer speed of tpuv5e to its host is unknown: give one, such as offload=25GB/s
// MODEL: host memory is counted only in program order: use memory-model=order

func.func @step(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = stablehlo.sine %x {recompute.phase = "primal", recompute.recompute = "offload"} : tensor<1024xf32>
  %b = stablehlo.exponential %a {recompute.phase = "primal"} : tensor<1024xf32>
  %y = stablehlo.tanh %b {recompute.phase = "primal", recompute.recompute = "offload"} : tensor<1024xf32>
  %g = stablehlo.multiply %b, %b {recompute.phase = "gradient"} : tensor<1024xf32>
  %i = stablehlo.multiply %g, %a {recompute.phase = "gradient"} : tensor<1024xf32>
  func.return %y, %i : tensor<1024xf32>, tensor<1024xf32>
}
