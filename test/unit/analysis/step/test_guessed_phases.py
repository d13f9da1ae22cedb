"""The end of the forward pass is guessed for steps in which no operation states its phase and no hint is given."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.func import FuncOp

from recompute.analysis.step import guessed_phases as guessed_phases_module
from recompute.analysis.step.guessed_phases import Guess, guessed_phases
from recompute.analysis.step.order import functions_of
from recompute.mlir_io.parser import parse_module

T, SCALAR = "tensor<8x8xf32>", "tensor<f32>"


def multiplied(result: str, left: str, right: str) -> str:
    return f"%{result} = stablehlo.dot_general %{left}, %{right}, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}"


def binary(name: str, result: str, left: str, right: str) -> str:
    return f"%{result} = stablehlo.{name} %{left}, %{right} : {T}"


def total(result: str, value: str) -> str:
    along = "across dimensions = [0, 1]"
    types = f"({T}, {SCALAR}) -> {SCALAR}"
    return f"%{result} = stablehlo.reduce(%{value} init: %z) applies stablehlo.add {along} : {types}"


FORWARD = [
    line
    for index in range(3)
    for line in (
        multiplied(f"a{index}", f"y{index - 1}" if index else "x", f"w{index}"),
        f"%y{index} = stablehlo.tanh %a{index} : {T}",
    )
]
BACKWARD = [
    line
    for index in (2, 1, 0)
    for line in (
        binary("multiply", f"s{index}", f"y{index}", f"y{index}"),
        binary("multiply", f"d{index}", f"g{index}", f"s{index}"),
        multiplied(f"u{index}", f"y{index - 1}" if index else "x", f"d{index}"),
        multiplied(f"g{index - 1}", f"d{index}", f"w{index}"),
    )
]
SEED = binary("subtract", "g2", "y2", "x")
UPDATES = [binary("subtract", f"n{index}", f"w{index}", f"u{index}") for index in range(3)]
UPDATED = {f"n{index}": T for index in range(3)}


def function_of(lines: Sequence[str], results: dict[str, str]) -> FuncOp:
    arguments = ", ".join(f"%{name}: {T}" for name in ("x", "w0", "w1", "w2"))
    body = "\n  ".join(("%z = stablehlo.constant dense<0.0> : tensor<f32>", *lines))
    types = ", ".join(results.values())
    returned = ", ".join(f"%{name}" for name in results)
    text = f"func.func @f({arguments}, %t: tensor<f32>) -> ({types}) {{\n  {body}\n  return {returned} : {types}\n}}"
    return functions_of(parse_module(text))[0]


def guess(lines: Sequence[str], results: dict[str, str]) -> Guess | None:
    return guessed_phases(function_of(lines, results))


def turn(lines: Sequence[str], results: dict[str, str]) -> str | None:
    result = guess(lines, results)
    assert result is not None and result.turn is not None
    return result.turn.results[0].name_hint


def test_without_loss_gradient_begins_at_reverse_reads() -> None:
    """The gradient begins at the derivative of the loss, which reads the last forward value first."""
    assert turn([*FORWARD, SEED, *BACKWARD, *UPDATES], UPDATED) == "g2"


def test_residual_block_sum_is_forward() -> None:
    """The sum at the end of the last block is a forward operation, since it reads `%y1` before the gradient does."""
    lines = [*FORWARD, binary("add", "e", "y2", "y1"), binary("subtract", "g2", "e", "x"), *BACKWARD, *UPDATES]
    assert turn(lines, UPDATED) == "e"


@pytest.mark.parametrize("last", [False, True])
def test_loss_is_first_scalar_that_needs_forward_pass(last: bool) -> None:
    """Neither a step count nor the norm of a gradient is taken for the loss."""
    count = "%c = stablehlo.add %t, %t : tensor<f32>"
    loss, norm = total("l", "y2"), total("q", "u0")
    step = [count, *FORWARD, *([] if last else [loss]), SEED, *BACKWARD, norm, *UPDATES, *([loss] if last else [])]
    result = guess(step, {"c": SCALAR, "q": SCALAR, "l": SCALAR, **UPDATED})
    assert result is not None and result.turn is None and result.hint.results == (2,)


def test_gradient_norm_alone_is_not_a_loss() -> None:
    lines = [*FORWARD, SEED, *BACKWARD, total("q", "u0"), *UPDATES]
    assert turn(lines, {"q": SCALAR, **UPDATED}) == "g2"


SKIPS = [
    *FORWARD,
    binary("add", "b", "y2", "y1"),
    f"%c = stablehlo.tanh %b : {T}",
    binary("add", "d", "c", "y0"),
]


def test_no_guess_if_nothing_is_read_again_after_last_reads() -> None:
    """There is no guess if one operation is the last reader of both values."""
    lines = [
        f"%a = stablehlo.sine %x : {T}",
        f"%b = stablehlo.tanh %a : {T}",
        f"%c = stablehlo.sine %b : {T}",
        binary("add", "d", "a", "b"),
    ]
    assert guess([*lines, binary("add", "e", "c", "d")], {"e": T, "d": T}) is None


def test_no_guess_if_the_turn_moves_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    residual = [*FORWARD, binary("add", "e", "y2", "y1"), binary("subtract", "g2", "e", "x"), *BACKWARD, *UPDATES]
    assert turn(residual, UPDATED) == "e"
    monkeypatch.setattr(guessed_phases_module, "MAX_MOVES", 0)
    assert guess(residual, UPDATED) is None


NO_STEPS = {
    "a chain": (FORWARD, {"y2": T}),
    "a network that reads what it skipped in reverse, from image to image": (SKIPS, {"d": T}),
    "its score beside it": ([*SKIPS, total("l", "d")], {"l": SCALAR, "d": T}),
    "features of three layers": (FORWARD, {"y0": T, "y1": T, "y2": T}),
    "only scalars": ([*FORWARD, total("l", "y2")], {"l": SCALAR}),
}


@pytest.mark.parametrize("name", NO_STEPS)
def test_no_guess_for_programs_without_gradient(name: str) -> None:
    assert guess(*NO_STEPS[name]) is None
