// RUN: not recompute-opt %s -p 'recompute-mark{checkpoints=h1,"block1/tahn"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not recompute-opt %s -p 'recompute-mark{checkpoints=7}' 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: recompute-opt %s -p 'recompute{checkpoints=h0,x,w,inner,g,dead}' 2>&1 > /dev/null | filecheck %s --check-prefix=IGNORED
// RUN: not recompute-opt %s -p 'recompute-mark{checkpoints=h1 skip=3}' 2>&1 | filecheck %s --check-prefix=SKIP
// RUN: not recompute-opt %s -p 'recompute-mark{checkpoints=h1 skip=-1}' 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not recompute-opt %s -p 'recompute-mark{segment-count=4}' 2>&1 | filecheck %s --check-prefix=MANY
// RUN: not recompute-opt %s -p 'recompute-mark{segment-count=-2}' 2>&1 | filecheck %s --check-prefix=FEW
// RUN: not recompute-opt %s -p 'recompute-mark{segments=block9}' 2>&1 | filecheck %s --check-prefix=REGION
// RUN: not recompute-opt %s -p 'recompute-mark{policy=dots_savable}' 2>&1 | filecheck %s --check-prefix=POLICY
// RUN: not recompute-opt %s -p 'recompute-mark{policy=sometimes}' 2>&1 | filecheck %s --check-prefix=POLICIES
// RUN: not recompute-opt %s -p 'recompute-mark{exclude="middle:stablehlo.sine"}' 2>&1 | filecheck %s --check-prefix=KEY
// RUN: not recompute-opt %s -p 'recompute-mark{exclude="pre:stablehlo.sine"}' 2>&1 | filecheck %s --check-prefix=MAIN
// RUN: not recompute-opt %s -p 'recompute-mark{exclude="main:stablehlo.sine; num:many"}' 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: not recompute-opt %s -p 'recompute-mark{exclude="main:a; main:b"}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not recompute-opt %s -p 'recompute-mark{outputs=perhaps}' 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not recompute-opt %s -p 'recompute-mark{checkpoint=h0}' 2>&1 | filecheck %s --check-prefix=OPTION

// Requests that do not fit the step: one line that names the invalid request, the valid ones, and the position.
func.func @step(%x: tensor<64xf32>, %w: tensor<64xf32>, %ct: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %a = stablehlo.multiply %x, %w : tensor<64xf32> loc("jit(f)/jvp(block0)/mul")
  %l:2 = stablehlo.while(%k = %zero, %v = %a) : tensor<i32>, tensor<64xf32>
    cond {
      %p = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %inner = stablehlo.sine %v : tensor<64xf32>
      stablehlo.return %three, %inner : tensor<i32>, tensor<64xf32>
    } loc("jit(f)/jvp(block0)/while")
  %h0 = stablehlo.tanh %l#1 : tensor<64xf32> loc("jit(f)/jvp(block0)/tanh")
  %dead = stablehlo.cosine %x : tensor<64xf32> loc("jit(f)/jvp(block0)/cos"("net.py":3:5))
  %b = stablehlo.sine %h0 : tensor<64xf32> loc("jit(f)/jvp(block1)/sin")
  %h1 = stablehlo.tanh %b : tensor<64xf32> loc("jit(f)/jvp(block1)/tanh")
  %y = stablehlo.exponential %h1 : tensor<64xf32> loc("jit(f)/jvp(head)/exp")
  %f = stablehlo.multiply %ct, %y : tensor<64xf32> loc("jit(f)/transpose(jvp(head))/mul")
  %g = stablehlo.multiply %f, %b : tensor<64xf32> loc("jit(f)/transpose(jvp(block1))/mul")
  %h = stablehlo.multiply %g, %l#1 : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  %i = stablehlo.multiply %h, %a : tensor<64xf32> loc("jit(f)/transpose(jvp(block0))/mul")
  func.return %y, %i : tensor<64xf32>, tensor<64xf32>
}
// UNKNOWN:  mark-selection-invalid.mlir:19:1: error: checkpoint 'block1/tahn' names no operation of the forward pass; did you mean 'block1/tanh'?
// NUMBER:   error: pass 'recompute-mark': option 'checkpoints' expects strings separated by commas, not 7; a string needs quotes: checkpoints="7"
// IGNORED-DAG: net.py:3:5: remark: checkpoint 'dead' is ignored: no result of the step needs it
// IGNORED-DAG: remark: checkpoint 'x' is ignored: it is an argument of the function, which is always live
// IGNORED-DAG: remark: checkpoint 'w' is ignored: it is an argument of the function, which is always live
// IGNORED-DAG: remark: checkpoint 'inner' is ignored: it is defined inside a region; name a result of the operation
// IGNORED-DAG: remark: checkpoint 'g' is ignored: it is computed in the backward pass
// SKIP:     mark-selection-invalid.mlir:19:1: error: there is no segment 3 to skip: the only segment is 0 (segment0)
// NEGATIVE: mark-selection-invalid.mlir:19:1: error: there is no segment -1 to skip
// MANY:     mark-selection-invalid.mlir:19:1: error: cannot divide 3 segments (block0, block1, head) into 4 segments
// FEW:      mark-selection-invalid.mlir:19:1: error: cannot divide 3 segments (block0, block1, head) into -2 segments
// REGION:   mark-selection-invalid.mlir:19:1: error: no segment matches 'block9'
// POLICY:   mark-selection-invalid.mlir:19:1: error: unknown policy 'dots_savable'; did you mean 'dots_saveable'?
// POLICIES: mark-selection-invalid.mlir:19:1: error: unknown policy 'sometimes'; expected one of nothing_saveable, everything_saveable, dots_saveable
// KEY:      error: exclude pattern 'middle:stablehlo.sine': 'middle:stablehlo.sine' does not begin with one of the keys pre:, main:, suf: and num:
// MAIN:     error: exclude pattern 'pre:stablehlo.sine': the part 'main:', which names the saved operations, is missing; expected names of operations whose results are saved, such as 'main:stablehlo.dot_general'
// COUNT:    error: exclude pattern 'main:stablehlo.sine; num:many': num must be the number of chains, or -1 for all chains, not 'many'
// TWICE:    error: exclude pattern 'main:a; main:b': 'main:' is given twice
// TYPE:     error: pass 'recompute-mark': option 'outputs' expects true or false, not perhaps{{$}}
// OPTION:   error: pass 'recompute-mark' has no option 'checkpoint'; did you mean 'checkpoints'?
