"""Random numbers, state and effects: equal masks, an equal stream of numbers, and nothing executed twice."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.dialects.names import Names
from recompute.interpreters.execute_check import compare
from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.inputs import random_inputs
from recompute.options.selection import Selection
from recompute.proof.prove import prove
from recompute.support.operations import name_of
from recompute.test.conformance.programs import (
    BEHIND,
    T,
    backward,
    by_hand,
    check_equal,
    classified,
    cloned,
    copies_in,
    copies_of,
    forward,
    maker,
    named,
    names_in,
    net,
    owner_of,
    recomputed,
    step,
    undelayed,
)
from recompute.transforms.lower import lower


def test_paddle_23_dropout_has_the_same_mask() -> None:
    """The gradient draws the bits again from the same key; from another key, the numbers differ."""
    result = recomputed(net("layers_dropout"), "segment*")
    assert result.copies.count("xor") >= 9
    inputs = random_inputs(function_named(result.before))
    assert compare(result.before, result.after, inputs).equal
    other = [np.asarray(array + 1) if array.dtype == np.uint32 else array for array in inputs]
    first, changed = (execute(function_named(result.after), values) for values in (inputs, other))
    assert not np.array_equal(first[1], changed[1])


@pytest.mark.parametrize("name", ["gumbel", "rrelu", "layers_dropout"])
def test_paddle_24_random_operations_keep_plain_gradients(name: str) -> None:
    """Gradients are kept with any random operation; Paddle seeds only dropout, so gumbel_softmax and rrelu differ."""
    result = recomputed(net(name), "segment*")
    assert len(result.copies) > 100 and prove(result.before, result.after).proved
    inputs = random_inputs(function_named(result.before))
    before, after = (execute(function_named(module), inputs) for module in (result.before, result.after))
    parameters = [(p - np.float32(0.1) * g).tobytes() for p, g in zip(inputs, before[1:], strict=False)]
    assert parameters == [(p - np.float32(0.1) * g).tobytes() for p, g in zip(inputs, after[1:], strict=False)]
    assert len(parameters) == 10


def draw(name: str, scope: str = "cell") -> str:
    return (
        f"  %{name}_lo = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"  %{name}_hi = stablehlo.constant dense<1.0> : tensor<f32>\n"
        f"  %{name}_n = stablehlo.constant dense<256> : tensor<1xi64>\n"
        f'  %{name} = "stablehlo.rng"(%{name}_lo, %{name}_hi, %{name}_n) '
        "{rng_distribution = #stablehlo<rng_distribution UNIFORM>} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> "
        f'{T} loc("jit(f)/jvp({scope})/{name}")'
    )


def noisy() -> ModuleOp:
    """Return a step with unkeyed noise inside a segment and after it."""
    return step(
        draw("n"),
        forward("a", "multiply %x, %n", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("b", "tanh %e", "cell"),
        draw("m", "next"),
        forward("c", "multiply %b, %m", "next"),
        forward("d", "exponential %c", "next"),
        backward("g", "multiply %ct, %d", "next"),
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "multiply %h, %n", "cell"),
        returns="%d, %i",
    )


def test_paddle_25_forward_random_stream_is_unchanged() -> None:
    """The same numbers are drawn in the same order; Paddle's seed operations change the loss."""
    after = cloned(noisy(), "cell")
    drawn = [op for op in after.walk() if name_of(op) == "stablehlo.rng"]
    assert [op.results[0].name_hint for op in drawn] == ["n", "m"]
    assert copies_in(after) == ["multiply", "exponential"]
    assert prove(noisy(), after).proved


def test_paddle_26_random_operation_without_state_is_kept() -> None:
    after = cloned(noisy(), "cell")
    classes = classified(after)
    held = named(after, "n")
    assert copies_of(after, "rng") == []
    # The copy reads the held noise behind the token: the mask is that of the forward pass.
    (copy,) = copies_of(after, "multiply")
    assert held in {undelayed(value) for value in copy.operands}
    assert classes.is_forward(maker(after, "n"))


KEYS = "tensor<256xui32>"


def test_paddle_27_returned_random_state_is_from_forward() -> None:
    """The state is advanced again for the mask, but the returned state is that of the forward pass."""
    module = step(
        '  %one = stablehlo.constant dense<1> : tensor<256xui32> loc("jit(f)")',
        forward("mixed", "multiply %state, %state", "cell", types=KEYS),
        forward("next", "add %mixed, %one", "cell", types=KEYS),
        forward("bits", "xor %mixed, %state", "cell", types=KEYS),
        forward("r", "convert %bits", "cell", types=f"({KEYS}) -> {T}"),
        forward("a", "multiply %x, %r", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("b", "tanh %e", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "multiply %h, %r", "cell"),
        arguments=f"%x: {T}, %ct: {T}, %state: {KEYS}",
        returns="%d, %i, %next",
        types=f"{T}, {T}, {KEYS}",
    )
    after = cloned(module, "cell")
    assert {"multiply", "xor", "convert", "exponential"} == set(copies_in(after))
    terminator = classified(after).order.operations[-1]
    assert terminator.operands[2] is named(after, "next")
    assert classified(after).is_forward(maker(after, "next"))
    check_equal(module, after)


EFFECTS = {
    "print": '  "test.print"(%a) : (tensor<256xf32>) -> () loc("jit(f)/jvp(cell)/print")',
    "assign": '  "test.assign"(%a, %x) : (tensor<256xf32>, tensor<256xf32>) -> () loc("jit(f)/jvp(cell)/assign")',
    "outfeed": '  "stablehlo.outfeed"(%a) : (tensor<256xf32>) -> () loc("jit(f)/jvp(cell)/outfeed")',
}


def with_line(line: str, second: str = "%a") -> ModuleOp:
    return step(
        forward("a", "sine %x", "cell"),
        line,
        forward("e", f"multiply %a, {second}", "cell"),
        forward("b", "tanh %e", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "multiply %h, %a", "cell"),
        returns="%d, %i",
    )


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_paddle_29_effects_are_never_copied(name: str) -> None:
    module = with_line(EFFECTS[name])
    after = cloned(module, "cell")
    assert sum(name in item for item in names_in(after)) == 1
    assert copies_in(after) == ["sine", "multiply"]
    assert prove(module, after).proved


def test_paddle_29_running_statistics_are_the_plain_ones() -> None:
    """Running statistics are updated once; all three implementations of Paddle update them twice."""
    result = recomputed(net("batch_norm"), "cell")
    inputs = random_inputs(function_named(result.before))
    plain, after = (execute(function_named(module), inputs)[2:4] for module in (result.before, result.after))
    assert [array.tobytes() for array in plain] == [array.tobytes() for array in after]
    assert result.copies


INTEGERS = "tensor<256xi32>"


def test_paddle_30_integers_of_pure_operations_are_recomputed() -> None:
    """Rounded numbers are recomputed, and so is a mask made from them."""
    module = step(
        forward("a", "sine %x", "cell"),
        forward("number", "iota dim = 0", "cell", types=INTEGERS),
        forward("rounded", "convert %a", "cell", types=f"({T}) -> {INTEGERS}"),
        forward("p", "compare EQ, %number, %rounded", "cell", types=f"({INTEGERS}, {INTEGERS}) -> tensor<256xi1>"),
        forward("e", "select %p, %a, %x", "cell", types=f"tensor<256xi1>, {T}"),
        forward("b", "tanh %e", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "select %p, %h, %g", "cell", types=f"tensor<256xi1>, {T}"),
        returns="%d, %i",
    )
    after = cloned(module, "cell")
    assert {"convert", "compare", "select"} <= set(copies_in(after))
    check_equal(module, after)


LOOP = """  %zero = stablehlo.constant dense<0> : tensor<i32> loc("jit(f)")
  %two = stablehlo.constant dense<2> : tensor<i32> loc("jit(f)")
  %one = stablehlo.constant dense<1> : tensor<i32> loc("jit(f)")
  %w:2 = stablehlo.while(%k = %zero, %v = %a) : tensor<i32>, tensor<256xf32>
    cond {
      %p = stablehlo.compare LT, %k, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %n = stablehlo.add %k, %one : tensor<i32>
      %s = stablehlo.sine %v : tensor<256xf32>
      stablehlo.return %n, %s : tensor<i32>, tensor<256xf32>
    } loc("jit(f)/jvp(cell)/while")"""


def test_paddle_31_operations_with_regions_are_copied_whole() -> None:
    """Operations with regions are copied; Paddle raises "Recompute don't support ops with sub_block"."""
    module = with_line(LOOP, "%w#1")
    after = cloned(module, "cell")
    assert len(copies_of(after, "while")) == 1
    assert names_in(after).count("while") == 2
    check_equal(module, after)
    lower(after, "stablehlo")
    check_equal(module, after)


@pytest.mark.parametrize("name", ["test.load", "test.read"])
def test_paddle_38_memory_reads_are_kept(name: str) -> None:
    """A read of a buffer that is written in the same step is not recomputed."""
    module = step(
        '  %buffer = "test.buffer"() : () -> index loc("jit(f)/buffer")',
        f'  %n = "{name}"(%buffer) : (index) -> {T} loc("jit(f)/jvp(cell)/load")',
        forward("a", "multiply %x, %n", "cell"),
        forward("e", "exponential %a", "cell"),
        forward("b", "tanh %e", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "multiply %h, %n", "cell"),
        f'  "test.store"(%i, %buffer) : ({T}, index) -> () loc("jit(f)/store")',
        returns="%d, %i",
    )
    after = cloned(module, "cell")
    assert copies_in(after) == ["multiply", "exponential"]
    (copy,) = copies_of(after, "multiply")
    assert named(after, "n") in {undelayed(value) for value in copy.operands}
    assert prove(module, after).proved


def test_paddle_28_other_numbers_are_drawn_on_request() -> None:
    """With preserve_rng_state=false the copy draws again; the proof reports that the results differ."""
    rng = """  %lo = stablehlo.constant dense<0.0> : tensor<f32> loc("jit(f)")
  %hi = stablehlo.constant dense<1.0> : tensor<f32> loc("jit(f)")
  %shape = stablehlo.constant dense<256> : tensor<1xi64> loc("jit(f)")
  %n = "stablehlo.rng"(%lo, %hi, %shape) {rng_distribution = #stablehlo<rng_distribution UNIFORM>} : \
(tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<256xf32> loc("jit(f)/jvp(cell)/rng")"""
    module = step(
        forward("a", "sine %x", "cell"),
        rng,
        forward("e", "multiply %a, %n", "cell"),
        forward("b", "tanh %e", "cell"),
        *BEHIND,
        backward("h", "multiply %g, %e", "cell"),
        backward("i", "multiply %h, %n", "cell"),
        returns="%d, %i",
    )
    held = by_hand(module, Selection("cell"))
    assert names_in(held.after).count("rng") == 1 and owner_of(named(held.after, "n")).attributes.get(Names.ID) is None
    drawn = by_hand(module, Selection("cell", preserve_rng_state=False))
    assert len(copies_of(drawn.after, "rng")) == 1
    with pytest.raises(AssertionError):
        check_equal(module, drawn.after)
