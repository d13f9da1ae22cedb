"""Cell of two operations with an effect, unseeded random numbers, a loop or a branch between them."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr

from recompute.dialects.names import Names
from recompute.test.conformance.programs import BEHIND, backward, classified, forward, step
from recompute.transforms.clone import clone
from recompute.transforms.cse import cse
from recompute.transforms.verify import verify

RNG = """  %lo = stablehlo.constant dense<0.0> : tensor<f32> loc("jit(f)")
  %hi = stablehlo.constant dense<1.0> : tensor<f32> loc("jit(f)")
  %shape = stablehlo.constant dense<256> : tensor<1xi64> loc("jit(f)")
  %n = "stablehlo.rng"(%lo, %hi, %shape) {MARKrng_distribution = #stablehlo<rng_distribution UNIFORM>} : \
(tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<256xf32> loc("jit(f)/jvp(cell)/rng")"""

LOOP = """  %zero = stablehlo.constant dense<0> : tensor<i32> loc("jit(f)")
  %three = stablehlo.constant dense<3> : tensor<i32> loc("jit(f)")
  %one = stablehlo.constant dense<1> : tensor<i32> loc("jit(f)")
  %w:2 = stablehlo.while(%k = %zero, %v = %a) : tensor<i32>, tensor<256xf32>
    cond {
      %p = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %n = stablehlo.add %k, %one : tensor<i32>
      %s = stablehlo.sine %v : tensor<256xf32>
      stablehlo.return %n, %s : tensor<i32>, tensor<256xf32>
    } loc("jit(f)/jvp(cell)/while")"""

BRANCH = """  %zero = stablehlo.constant dense<0.0> : tensor<f32> loc("jit(f)")
  %first = stablehlo.slice %x [0:1] : (tensor<256xf32>) -> tensor<1xf32> loc("jit(f)/jvp(cell)/slice")
  %scalar = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32> loc("jit(f)/jvp(cell)/reshape")
  %p = stablehlo.compare GT, %scalar, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("jit(f)/jvp(cell)/gt")
  %w = "stablehlo.if"(%p) ({
    %s = stablehlo.sine %a : tensor<256xf32>
    stablehlo.return %s : tensor<256xf32>
  }, {
    %s = stablehlo.cosine %a : tensor<256xf32>
    stablehlo.return %s : tensor<256xf32>
  }) : (tensor<i1>) -> tensor<256xf32> loc("jit(f)/jvp(cell)/cond")"""

GRADIENTS = (backward("h", "multiply %g, %e", "cell"), backward("i", "multiply %h, %a", "cell"))


def with_effect(line: str, result: str = "") -> ModuleOp:
    """Return a cell with `line` between its operations; if there is a `result`, the gradient reads it."""
    last = (backward("j", f"multiply %i, {result}", "cell"),) if result else ()
    return step(
        forward("a", "sine %x", "cell"),
        line,
        forward("e", f"add %a, {result or '%a'}", "cell"),
        forward("b", "tanh %e", "cell"),
        *BEHIND,
        *GRADIENTS,
        *last,
        returns="%d, %j" if result else "%d, %i",
    )


def forced(module: ModuleOp, scope: str) -> ModuleOp:
    """Mark every forward operation of the scope except its outputs by hand, clone it, and clean up."""
    classes = classified(module)
    returned = set(classes.order.operations[-1].operands)
    for op in classes.order.operations:
        inside = f"jvp({scope})" in str(op.location) or f"/{scope}/" in str(op.location)
        if classes.is_forward(op) and inside and not returned.intersection(op.results):
            op.attributes |= {Names.RECOMPUTE: BoolAttr.from_bool(True), Names.SEGMENT: StringAttr(scope)}
    clone(module)
    cse(module)
    verify(module)
    return module
