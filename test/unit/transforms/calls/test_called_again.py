"""For an executor in program order, calls are repeated only if they need no more memory than inlined copies."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import CallOp

from recompute.dialects.structured import GradientOp
from recompute.driver.api import memory
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.transforms.outline_gradient import outline_gradient

T = "tensor<1024xf32>"
BYTES = 4 * 1024


def step(block: str, gradient: str, functions: str) -> str:
    """Return a step whose block makes %a and %b from %x, and whose gradient makes %i from %g and both of them."""
    return f"""
func.func @step(%x: {T}) -> ({T}, {T}) {{
  {block}
  %o = stablehlo.tanh %b : {T} loc("jit(s)/jvp(block0)/tanh")
  %d = stablehlo.sine %o : {T} loc("jit(s)/jvp(block1)/sin")
  %e = stablehlo.exponential %d : {T} loc("jit(s)/jvp(block1)/exp")
  %y = stablehlo.tanh %e : {T} loc("jit(s)/jvp(block1)/tanh")
  %g = stablehlo.multiply %e, %d : {T} loc("jit(s)/transpose(jvp(block1))/mul")
  {gradient}
  func.return %y, %i : {T}, {T}
}}
{functions}"""


# The function waits for the copies of %a and %b; its first product alone needs neither.
WAITS = step(
    f"""%a = stablehlo.exponential %x : {T} loc("jit(s)/jvp(block0)/exp")
  %b = stablehlo.cosine %a : {T} loc("jit(s)/jvp(block0)/cos")""",
    f"%i = func.call @gradient(%g, %o, %b, %a) : ({T}, {T}, {T}, {T}) -> {T} "
    'loc("jit(s)/transpose(jvp(block0))/jit(gradient)")',
    f"""func.func private @gradient(%g: {T}, %o: {T}, %b: {T}, %a: {T}) -> {T} {{
  %0 = stablehlo.multiply %g, %o : {T} loc("mul")
  %1 = stablehlo.multiply %0, %b : {T} loc("mul")
  %2 = stablehlo.multiply %1, %a : {T} loc("mul")
  func.return %2 : {T}
}}""",
)

# Both calls compute the same sine, and the gradient reads it of both.
TWINS = step(
    f"""%a, %c = func.call @f(%x) : ({T}) -> ({T}, {T}) loc("jit(s)/jvp(block0)/jit(f)")
  %p = func.call @h(%x) : ({T}) -> {T} loc("jit(s)/jvp(block0)/jit(h)")
  %b = stablehlo.add %c, %p : {T} loc("jit(s)/jvp(block0)/add")""",
    f"""%k = stablehlo.multiply %g, %o : {T} loc("jit(s)/transpose(jvp(block0))/mul")
  %l = stablehlo.multiply %k, %c : {T} loc("jit(s)/transpose(jvp(block0))/mul")
  %m = stablehlo.multiply %l, %a : {T} loc("jit(s)/transpose(jvp(block0))/mul")
  %n = stablehlo.multiply %k, %p : {T} loc("jit(s)/transpose(jvp(block0))/mul")
  %i = stablehlo.add %m, %n : {T} loc("jit(s)/transpose(jvp(block0))/add_any")""",
    f"""func.func private @f(%x: {T}) -> ({T}, {T}) {{
  %0 = stablehlo.sine %x : {T} loc("sin")
  %1 = stablehlo.cosine %0 : {T} loc("cos")
  func.return %0, %1 : {T}, {T}
}}
func.func private @h(%x: {T}) -> {T} {{
  %0 = stablehlo.sine %x : {T} loc("sin")
  func.return %0 : {T}
}}""",
)


def rewritten_with(text: str, target: str, calls: bool = True) -> tuple[int, int, str]:
    """Return the tensors alive at the peak in program order, the number of calls, and the last remark."""
    module = parse_module(text)
    result = rewrite_in_place(module, RecomputeOptions(Selection(segments="block0"), target=target, calls=calls))
    assert result.copies and prove(parse_module(text), module)
    called = sum(isinstance(op, CallOp) for op in module.walk())
    return memory(module)["step"].peak_bytes // BYTES, called, result.remarks[-1].reason if result.remarks else ""


@pytest.mark.parametrize("text", [WAITS, TWINS])
def test_functions_stay_inlined_if_calls_need_more_memory(text: str) -> None:
    sizes = "from 16.0 KiB (16384 bytes) to 20.0 KiB (20480 bytes)"
    stay = f"functions stay inlined: restoring their calls would raise the peak in program order {sizes}"
    assert rewritten_with(text, "none") == (4, 0, stay)
    peak, calls, remark = rewritten_with(text, "none", calls=False)
    assert (peak, calls) == (4, 0) and remark != stay


@pytest.mark.parametrize("text", [WAITS, TWINS])
def test_gradient_regions_are_restored_if_functions_stay_inlined(text: str) -> None:
    module = parse_module(text)
    assert outline_gradient(module) == 1
    result = rewrite_in_place(module, RecomputeOptions(Selection(segments="block0"), target="none"))
    assert result.remarks[-1].reason.startswith("functions stay inlined")
    assert sum(isinstance(op, GradientOp) for op in module.walk()) == 1


@pytest.mark.parametrize(
    ("text", "peak", "calls"),
    [(WAITS.replace("%g, %o : ", "%g, %a : "), 4, 1), (TWINS.replace("sine %x", "negate %x", 1), 5, 4)],
)
def test_calls_are_repeated_if_the_peak_is_unaffected(text: str, peak: int, calls: int) -> None:
    """Calls are repeated if every operation of the gradient's function waits for a copy, and the calls compute other
    values."""
    assert rewritten_with(text, "none")[:2] == (peak, calls)
    assert rewritten_with(text, "none", calls=False)[:2] == (peak, 0)


def test_calls_are_always_repeated_for_xla() -> None:
    """Calls are repeated for XLA, which inlines them and merges duplicates itself; results have the bits of the plain
    step."""
    assert rewritten_with(TWINS, "stablehlo")[:2] == (5, 4)
    assert rewritten_with(TWINS, "stablehlo", calls=False)[:2] == (4, 0)
