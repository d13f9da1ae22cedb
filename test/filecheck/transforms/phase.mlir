// RUN: recompute-opt %s -p recompute-phase --split-input-file | filecheck %s

// Operations have one of four phases. The mask is residual: it is computed in the forward pass, but the loss does not need
// it.
func.func @step(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.multiply %x, %w : tensor<4xf32> loc("jit(step)/jvp(block0)/mul")
  %1 = stablehlo.tanh %0 : tensor<4xf32> loc("jit(step)/jvp(block0)/tanh")
  %2 = stablehlo.multiply %1, %1 : tensor<4xf32> loc("jit(step)/jvp(block0)/mul")
  %3 = stablehlo.multiply %1, %2 : tensor<4xf32> loc("jit(step)/transpose(jvp(block0))/mul")
  %4 = stablehlo.multiply %3, %x : tensor<4xf32> loc("jit(step)/transpose(jvp(block0))/mul")
  %5 = stablehlo.subtract %w, %4 : tensor<4xf32> loc("jit(step)/sub")
  func.return %1, %5 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @step
// CHECK-NEXT:    stablehlo.multiply %x, %w {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.tanh {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "residual"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.subtract {{.*}} {recompute.phase = "update"}
// CHECK-NEXT:    func.return {recompute.phase = "update"}

// -----

// Attributes are a source of phases; an operation without one is classified by its position and its readers.
func.func @attributes(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  %1 = stablehlo.cosine %x {recompute.phase = "residual"} : tensor<4xf32>
  %2 = stablehlo.negate %0 : tensor<4xf32>
  %3 = stablehlo.multiply %2, %1 {recompute.phase = "gradient"} : tensor<4xf32>
  %4 = stablehlo.negate %3 : tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
// CHECK-LABEL: func.func @attributes
// CHECK-NEXT:    stablehlo.sine {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.cosine {{.*}} {recompute.phase = "residual"}
// CHECK-NEXT:    stablehlo.negate {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.negate {{.*}} {recompute.phase = "update"}

// -----

// If every operation states its phase, positions do not matter: forward, gradient, forward, gradient. Operations on
// constants may lack a phase; they take that of their first reader.
func.func @several_gradients(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x {recompute.phase = "primal"} : tensor<4xf32>
  %1 = stablehlo.negate %0 {recompute.phase = "gradient"} : tensor<4xf32>
  %k = stablehlo.constant dense<2.0> : tensor<4xf32>
  %2 = stablehlo.multiply %1, %k {recompute.phase = "primal"} : tensor<4xf32>
  %l = stablehlo.constant dense<3.0> : tensor<4xf32>
  %3 = stablehlo.multiply %2, %l {recompute.phase = "gradient"} : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
// CHECK-LABEL: func.func @several_gradients
// CHECK-NEXT:    stablehlo.sine {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.negate {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.constant {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.constant {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    func.return {recompute.phase = "update"}

// -----

// If the locations show two gradients in sequence, the second step begins at its first forward operation.
func.func @one_gradient_behind_the_other(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(d)/sin")
  %1 = stablehlo.negate %0 : tensor<4xf32> loc("jit(f)/transpose(jvp(d))/neg")
  %2 = stablehlo.add %x, %1 : tensor<4xf32> loc("jit(f)/add")
  %3 = stablehlo.cosine %2 : tensor<4xf32> loc("jit(f)/jvp(g)/cos")
  %4 = stablehlo.multiply %3, %2 : tensor<4xf32> loc("jit(f)/transpose(jvp(g))/mul")
  %5 = stablehlo.add %x, %4 : tensor<4xf32> loc("jit(f)/add")
  func.return %2, %5 : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: func.func @one_gradient_behind_the_other
// CHECK-NEXT:    stablehlo.sine {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.negate {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.add {{.*}} {recompute.phase = "update"}
// CHECK-NEXT:    stablehlo.cosine {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
// CHECK-NEXT:    stablehlo.add {{.*}} {recompute.phase = "update"}

// -----

// An operation on constants has no phase of its own, whatever its path: no gradient begins with it.
func.func @constants_have_no_phase(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = stablehlo.constant dense<2.0> : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/div")
  %l = stablehlo.multiply %k, %k : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/div")
  %0 = stablehlo.sine %x : tensor<4xf32> loc("jit(f)/jvp(b)/sin")
  %1 = stablehlo.multiply %0, %l : tensor<4xf32> loc("jit(f)/transpose(jvp(b))/mul")
  func.return %1 : tensor<4xf32>
}
// CHECK-LABEL: func.func @constants_have_no_phase
// CHECK-NEXT:    stablehlo.constant {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.sine {{.*}} {recompute.phase = "primal"}
// CHECK-NEXT:    stablehlo.multiply {{.*}} {recompute.phase = "gradient"}
