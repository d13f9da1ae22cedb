// RUN: recompute-opt %s -pass-pipeline='builtin.module(func.func(cse,dce))' | filecheck %s
// RUN: recompute-opt %s -p 'func.func(cse)' --print-ir-after-all 2>&1 >/dev/null | filecheck %s --check-prefix=DUMP
// RUN: recompute-opt %s -pass-pipeline='builtin.module(builtin.module(func.func(cse)))' | filecheck %s --check-prefix=INNER
// RUN: recompute-opt %s -pass-pipeline='builtin.module(any(cse))' | filecheck %s --check-prefix=ANY
// RUN: recompute-opt %s -p 'builtin.module(func.func(cse,dce))' | filecheck %s
// RUN: not recompute-opt %s -pass-pipeline='builtin.module(func.fun(cse),cse)' 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not recompute-opt %s -p 'cse,builtin.module(builtin.module(recompute-inline))' 2>&1 | filecheck %s --check-prefix=OURS
// RUN: recompute-opt %s -pass-pipeline='builtin.module(func.func(scf.for(cse)))' 2>&1 >/dev/null | filecheck %s --check-prefix=NESTED
// RUN: recompute-opt %s -pass-pipeline='builtin.module(func.func(cse),builtin.module(recompute-inline{},func.func(dce)))' --dump-pass-pipeline 2>&1 >/dev/null | filecheck %s --check-prefix=PIPELINE

// A pass in `func.func(...)` runs on each function, and on no function of an inner module.

func.func @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = stablehlo.sine %x : tensor<4xf32>
  %b = stablehlo.sine %x : tensor<4xf32>
  %c = stablehlo.add %a, %b : tensor<4xf32>
  func.return %c : tensor<4xf32>
}
func.func @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  %unused = stablehlo.cosine %x : tensor<4xf32>
  func.return %x : tensor<4xf32>
}
module @inner {
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = stablehlo.tanh %x : tensor<4xf32>
    %b = stablehlo.tanh %x : tensor<4xf32>
    %c = stablehlo.add %a, %b : tensor<4xf32>
    func.return %c : tensor<4xf32>
  }
}

// CHECK-LABEL: func.func @outer
// CHECK-NEXT:    %a = stablehlo.sine
// CHECK-NEXT:    %c = stablehlo.add %a, %a
// CHECK-LABEL: func.func @second
// CHECK-NEXT:    func.return
// CHECK-LABEL: builtin.module @inner
// CHECK:         %c = stablehlo.add %a, %b

// DUMP: // -----// IR Dump After CommonSubexpressionElimination (cse) ('func.func' operations) //----- //

// INNER-LABEL: func.func @outer
// INNER:         %c = stablehlo.add %a, %b
// INNER-LABEL: builtin.module @inner
// INNER:         %c = stablehlo.add %a, %a

// ANY-LABEL: func.func @outer
// ANY:         %c = stablehlo.add %a, %a
// ANY-LABEL: builtin.module @inner
// ANY:         %c = stablehlo.add %a, %a

// NOTHING:  error: 'cse' did not run: there is no func.fun; did you mean 'func.func'?
// OURS:     error: 'recompute-inline' did not run: there is no builtin.module in builtin.module; without this anchor it runs on the module itself
// NESTED:   remark: 'cse' did not run: there is no scf.for in func.func{{$}}
// PIPELINE: builtin.module(func.func(cse),builtin.module(recompute-inline),builtin.module(func.func(dce)))
