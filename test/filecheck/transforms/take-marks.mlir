// RUN: recompute-opt %s -p recompute-take-marks --split-input-file 2>%t | filecheck %s
// RUN: filecheck %s --check-prefix=REMARK --input-file=%t

// A mark becomes an attribute of the operation that computes the value, and the call is erased.
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %1 = stablehlo.custom_call @recompute.save(%0) {backend_config = ""} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.custom_call @recompute.name(%1) {backend_config = "hidden"} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.sine %2 : tensor<4xf32>
  %4 = stablehlo.custom_call @recompute.again(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = stablehlo.multiply %4, %0 : tensor<4xf32>
  func.return %5 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    [[A:%\w+]] = stablehlo.tanh %x {recompute.recompute = "must_save", recompute.name = "hidden"}
// CHECK-NEXT:    [[B:%\w+]] = stablehlo.sine [[A]] {recompute.recompute = "must_recompute"}
// CHECK-NEXT:    [[C:%\w+]] = stablehlo.multiply [[B]], [[A]]
// CHECK-NEXT:    func.return [[C]]

// -----

// The mark nearest to the operation takes precedence; names accumulate.
func.func public @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x {recompute.name = "own"} : tensor<4xf32>
  %1 = stablehlo.custom_call @recompute.again(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.custom_call @recompute.save(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.custom_call @recompute.name(%2) {backend_config = "given"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @twice
// CHECK-NEXT:    [[A:%\w+]] = stablehlo.tanh %x {recompute.name = ["given", "own"], recompute.recompute = "must_recompute"}
// CHECK-NEXT:    func.return [[A]]

// -----

// Only one of several results is marked; the others have no entry. On a call the mark applies only to that result.
func.func public @results(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0, %1 = func.call @two(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = stablehlo.custom_call @recompute.save(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = func.call @one(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = stablehlo.custom_call @recompute.again(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = stablehlo.add %2, %4 : tensor<4xf32>
  func.return %5 : tensor<4xf32>
}
func.func private @two(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.cosine %x : tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// A mark on an argument of a private function applies to the operands of its calls.
func.func private @one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @recompute.name(%x) {backend_config = "passed"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.tanh %0 : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func public @results
// CHECK-NEXT:    [[A:%\w+]], [[B:%\w+]] = func.call @two(%x) {recompute.recompute = [unit, "must_save"], recompute.name = "passed"}
// CHECK-NEXT:    [[C:%\w+]] = func.call @one([[A]]) {recompute.recompute = ["must_recompute"]}
// CHECK:         [[D:%\w+]] = stablehlo.tanh %x
// CHECK-NEXT:    func.return [[D]]

// -----

// Marks on arguments of the step or of a region have no effect: the former are always live, the latter change in each run.
func.func public @arguments(%x: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.custom_call @recompute.save(%x) : (tensor<i32>) -> tensor<i32>
  %1 = stablehlo.custom_call @recompute.save(%x) : (tensor<i32>) -> tensor<i32>
  %2 = stablehlo.while(%i = %0) : tensor<i32>
  cond {
    %3 = stablehlo.compare LT, %i, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.custom_call @recompute.offload(%i) : (tensor<i32>) -> tensor<i32>
    %4 = stablehlo.add %3, %3 : tensor<i32>
    stablehlo.return %4 : tensor<i32>
  }
  func.return %2 : tensor<i32>
}
// CHECK-LABEL: func.func public @arguments
// CHECK-NOT:     custom_call
// REMARK:      take-marks.mlir:{{\d+}}:{{\d+}}: remark: 'save' has no effect here: the value is an argument of the step, and is live anyway
// REMARK-NEXT: take-marks.mlir:{{\d+}}:{{\d+}}: remark: 'offload' has no effect here: the value is an argument of a region, and gets a new value each time
// REMARK-NEXT: take-marks.mlir:{{\d+}}:{{\d+}}: remark: 'offload' only saves the value: offload=marked would also move it to the host; the attribute stays for other tools
