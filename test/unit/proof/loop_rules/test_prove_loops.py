"""Rules for loops in tier 2 of the proof: each accepts its rewrite, and rejects the closest unequal programs."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.dialects.context import make_context
from recompute.interpreters.execute_check import compare
from recompute.mlir_io.parser import parse_module
from recompute.proof.prove import ProofOptions, prove

PLAIN = """
func.func public @main(%x: tensor<4xf32>, %ct: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.5> : tensor<f32>
  %empty = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
  %n, %y, %s = stablehlo.while(%i = %zero, %h = %x, %a = %empty) : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
  cond {
    %end = stablehlo.constant dense<6> : tensor<i32>
    %c = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %float = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %wide = stablehlo.broadcast_in_dim %float, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %p = stablehlo.multiply %h, %wide : tensor<4xf32>
    %t = stablehlo.cosine %p : tensor<4xf32>
    %t1 = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %t1, %i, %o : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
    %next = stablehlo.sine %t : tensor<4xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %next, %a1 : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
  }
  %m, %g = stablehlo.while(%j = %zero, %d = %ct) : tensor<i32>, tensor<4xf32>
  cond {
    %end = stablehlo.constant dense<6> : tensor<i32>
    %c = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %six = stablehlo.constant dense<6> : tensor<i32>
    %rest = stablehlo.subtract %six, %j : tensor<i32>
    %at = stablehlo.subtract %rest, %one : tensor<i32>
    %t1 = stablehlo.dynamic_slice %s, %at, %o, sizes = [1, 4] : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %t = stablehlo.reshape %t1 : (tensor<1x4xf32>) -> tensor<4xf32>
    %q = stablehlo.add %d, %t : tensor<4xf32>
    %r = stablehlo.sine %q : tensor<4xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %r : tensor<i32>, tensor<4xf32>
  }
  func.return %y, %g : tensor<4xf32>, tensor<4xf32>
}
"""
CUT = (
    PLAIN.replace("%t1 = stablehlo.broadcast_in_dim %t,", "%t1 = stablehlo.broadcast_in_dim %h,")
    .replace(
        "    %t = stablehlo.reshape %t1 : (tensor<1x4xf32>) -> tensor<4xf32>\n",
        "    %hh = stablehlo.reshape %t1 : (tensor<1x4xf32>) -> tensor<4xf32>\n"
        "    %float = stablehlo.convert %at : (tensor<i32>) -> tensor<f32>\n"
        "    %wide = stablehlo.broadcast_in_dim %float, dims = [] : (tensor<f32>) -> tensor<4xf32>\n"
        "    %p = stablehlo.multiply %hh, %wide : tensor<4xf32>\n"
        "    %t = stablehlo.cosine %p : tensor<4xf32>\n",
    )
    .replace("dense<0.5>", "dense<0.0>")
)
"""The carry is stacked up instead; what the stack begins with does not matter."""

FIRST, SECOND = CUT.index("%n, %y"), CUT.index("%m, %g")


def module_of(text: str) -> ModuleOp:
    module = parse_module(text, "loops.mlir", make_context())
    module.verify()
    return module


def in_first(old: str, new: str) -> str:
    part = CUT[FIRST:SECOND]
    assert old in part
    return CUT[:FIRST] + part.replace(old, new) + CUT[SECOND:]


def in_second(old: str, new: str) -> str:
    assert old in CUT[SECOND:]
    return CUT[:SECOND] + CUT[SECOND:].replace(old, new)


RIGHT = {
    "dropped values are recomputed": CUT,
    "the place is computed in one step": in_second(
        "%rest = stablehlo.subtract %six, %j : tensor<i32>\n    %at = stablehlo.subtract %rest, %one : tensor<i32>",
        "%five = stablehlo.constant dense<5> : tensor<i32>\n    %at = stablehlo.subtract %five, %j : tensor<i32>",
    ),
    "an unused carry": CUT.replace(
        "%m, %g = stablehlo.while(%j = %zero, %d = %ct) : tensor<i32>, tensor<4xf32>",
        "%m, %g, %z = stablehlo.while(%j = %zero, %d = %ct, %e = %x) : tensor<i32>, tensor<4xf32>, tensor<4xf32>",
    ).replace(
        "stablehlo.return %j1, %r : tensor<i32>, tensor<4xf32>",
        "stablehlo.return %j1, %r, %d : tensor<i32>, tensor<4xf32>, tensor<4xf32>",
    ),
    "carries in another order": CUT.replace(
        "%m, %g = stablehlo.while(%j = %zero, %d = %ct) : tensor<i32>, tensor<4xf32>",
        "%g, %m = stablehlo.while(%d = %ct, %j = %zero) : tensor<4xf32>, tensor<i32>",
    ).replace(
        "stablehlo.return %j1, %r : tensor<i32>, tensor<4xf32>",
        "stablehlo.return %r, %j1 : tensor<4xf32>, tensor<i32>",
    ),
    "what is carried unchanged": CUT.replace(
        "%m, %g = stablehlo.while(%j = %zero, %d = %ct) : tensor<i32>, tensor<4xf32>",
        "%m, %g, %z = stablehlo.while(%j = %zero, %d = %ct, %k = %s) : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>",
    )
    .replace(
        "stablehlo.return %j1, %r : tensor<i32>, tensor<4xf32>",
        "stablehlo.return %j1, %r, %k : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>",
    )
    .replace("dynamic_slice %s,", "dynamic_slice %k,"),
}

WRONG = {
    "a slice too early": in_second("stablehlo.subtract %rest, %one", "stablehlo.subtract %rest, %six"),
    "a slice too late, kept within bounds": in_second("stablehlo.subtract %rest, %one", "stablehlo.subtract %rest, %o"),
    "in the other direction": in_second("dynamic_slice %s, %at,", "dynamic_slice %s, %j,"),
    "the counter of the other loop": in_second("stablehlo.convert %at", "stablehlo.convert %j"),
    "the value before the loop": in_second("stablehlo.multiply %hh,", "stablehlo.multiply %x,"),
    "the value after the loop": in_second("stablehlo.multiply %hh,", "stablehlo.multiply %y,"),
    "the next carry is stored": in_first("broadcast_in_dim %h,", "broadcast_in_dim %next,")
    .replace("    %next = stablehlo.sine %t : tensor<4xf32>\n", "")
    .replace(
        "    %t1 = stablehlo.broadcast_in_dim %next",
        "    %next = stablehlo.sine %t : tensor<4xf32>\n    %t1 = stablehlo.broadcast_in_dim %next",
    ),
    "stored in the other direction": in_first(
        "    %a1 = stablehlo.dynamic_update_slice %a, %t1, %i,",
        "    %five = stablehlo.constant dense<5> : tensor<i32>\n"
        "    %k = stablehlo.subtract %five, %i : tensor<i32>\n"
        "    %a1 = stablehlo.dynamic_update_slice %a, %t1, %k,",
    ),
    "stored in one place": in_first("dynamic_update_slice %a, %t1, %i,", "dynamic_update_slice %a, %t1, %o,"),
    "the last iteration is missing": in_first("dense<6>", "dense<5>"),
    "the last gradient is missing": CUT[:SECOND]
    + CUT[SECOND:].replace("%end = stablehlo.constant dense<6>", "%end = stablehlo.constant dense<5>"),
    "the first iteration is missing": CUT.replace(
        "%n, %y, %s = stablehlo.while(%i = %zero,",
        "%start = stablehlo.constant dense<1> : tensor<i32>\n  %n, %y, %s = stablehlo.while(%i = %start,",
    ),
    "two steps at once": in_first("stablehlo.constant dense<1>", "stablehlo.constant dense<2>"),
    "one iteration more": in_first("compare LT", "compare LE"),
    "another operation": in_second("stablehlo.cosine %p", "stablehlo.sine %p"),
    "an operation less": in_second("stablehlo.cosine %p", "stablehlo.negate %p"),
    "the stack is emptied each time": in_first("dynamic_update_slice %a,", "dynamic_update_slice %empty,"),
    "the stack is not written": in_first("stablehlo.return %i1, %next, %a1", "stablehlo.return %i1, %next, %a"),
    "the carry is what it was": in_first("stablehlo.return %i1, %next, %a1", "stablehlo.return %i1, %h, %a1"),
    "another gradient to start with": CUT.replace("%d = %ct", "%d = %x"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_rewritten_loops_are_proved(name: str) -> None:
    before, after = module_of(PLAIN), module_of(RIGHT[name])
    proof = prove(before, after)
    assert proof and proof.tier == 2, proof.reason
    assert prove(after, before)
    assert compare(before, after, inputs()).equal


@pytest.mark.parametrize("name", WRONG)
def test_nearly_equal_loops_are_not_proved(name: str) -> None:
    before, after = module_of(PLAIN), module_of(WRONG[name])
    assert not prove(before, after) and not prove(after, before)
    assert not compare(before, after, inputs()).equal


def test_rewritten_loops_are_not_proved_without_loop_rules() -> None:
    assert not prove(module_of(PLAIN), module_of(CUT), ProofOptions(loops=False))


def inputs() -> list[object]:
    numbers = np.random.default_rng(0)
    return [numbers.normal(size=4).astype(np.float32) for _ in range(2)]


LEAK = """
func.func public @main(%s: tensor<6x4xf32>) -> tensor<4xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<4xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x4xf32>
  %n, %k = stablehlo.while(%i = %zero, %a = %empty) : tensor<i32>, tensor<3x4xf32>
  cond {{
    %end = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.dynamic_slice %s, %i, %o, sizes = [1, 4] : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %u = stablehlo.sine %t : tensor<1x4xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %u, %i, %o : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %i1 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %i1, %a1 : tensor<i32>, tensor<3x4xf32>
  }}
  %m, %g = stablehlo.while(%j = %zero, %d = %f) : tensor<i32>, tensor<4xf32>
  cond {{
    %end = stablehlo.constant dense<6> : tensor<i32>
    %c = stablehlo.compare LT, %j, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %o = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    {read}
    %v = stablehlo.reshape %u : (tensor<1x4xf32>) -> tensor<4xf32>
    %r = stablehlo.add %d, %v : tensor<4xf32>
    %j1 = stablehlo.add %j, %one : tensor<i32>
    stablehlo.return %j1, %r : tensor<i32>, tensor<4xf32>
  }}
  func.return %g : tensor<4xf32>
}}
"""


def test_index_beyond_the_stack_is_not_proved() -> None:
    """A second loop that runs longer than the stack is high is rejected, since its last indices are clamped."""
    slices = "(tensor<{0}x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>"
    kept = f"%u = stablehlo.dynamic_slice %k, %j, %o, sizes = [1, 4] : {slices.format(3)}"
    again = (
        f"%w = stablehlo.dynamic_slice %s, %j, %o, sizes = [1, 4] : {slices.format(6)}\n"
        "    %u = stablehlo.sine %w : tensor<1x4xf32>"
    )
    before, after = module_of(LEAK.format(read=kept)), module_of(LEAK.format(read=again))
    assert not prove(before, after) and not prove(after, before)
    stack = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    assert not compare(before, after, [stack]).equal


def summed(channel: int) -> str:
    handle = f"channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>"
    return (
        f'    %t = "stablehlo.all_reduce"(%p) <{{{handle}, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{\n'
        "    ^bb0(%l: tensor<f32>, %k: tensor<f32>):\n"
        "      %u = stablehlo.add %l, %k : tensor<f32>\n"
        "      stablehlo.return %u : tensor<f32>\n"
        "    }) : (tensor<4xf32>) -> tensor<4xf32>\n"
    )


COSINE = "    %t = stablehlo.cosine %p : tensor<4xf32>\n"
EXCHANGED = PLAIN.replace(COSINE, summed(1))
EXCHANGED_AGAIN = CUT[:SECOND].replace(COSINE, summed(1)) + CUT[SECOND:].replace(COSINE, summed(2))


def test_collectives_of_counted_loops_may_be_repeated() -> None:
    """Collectives of two loops with a constant trip count are equal, since all devices reach them together."""
    proof = prove(module_of(EXCHANGED), module_of(EXCHANGED_AGAIN))
    assert proof and proof.tier == 2
    again = EXCHANGED_AGAIN.replace("handle = 2", "handle = 1")
    assert "do not share a channel in the original" in prove(module_of(EXCHANGED), module_of(again)).reason
    other = CUT[:SECOND].replace(COSINE, summed(1)) + CUT[SECOND:].replace(COSINE, summed(2).replace("add", "maximum"))
    assert not prove(module_of(EXCHANGED), module_of(other))


def test_collectives_of_dynamic_loops_are_effects() -> None:
    """Collectives in a loop with a data-dependent trip count are effects: the trip counts of devices may differ."""
    end = "%end = stablehlo.constant dense<6> : tensor<i32>\n"
    first = EXCHANGED.index(end)

    def ending(text: str) -> str:
        argument = text.replace("%ct: tensor<4xf32>)", "%ct: tensor<4xf32>, %many: tensor<i32>)")
        at = argument.index(end)
        return argument[:at] + "%end = stablehlo.add %many, %many : tensor<i32>\n" + argument[at + len(end) :]

    assert first > 0
    assert prove(module_of(ending(EXCHANGED)), module_of(ending(EXCHANGED)))
    assert not prove(module_of(ending(EXCHANGED)), module_of(ending(EXCHANGED_AGAIN)))
