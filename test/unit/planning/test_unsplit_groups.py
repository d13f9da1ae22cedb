"""Bytes that copies free, and bytes that they keep alive instead. A value of this step has 1024 bytes."""

from __future__ import annotations

import pytest

from recompute.planning.unsplit_groups import freed_bytes, pinned_bytes
from recompute.test.named_steps import named_step, numbers

T = "tensor<256xf32>"


def line(result: str, text: str, phase: str) -> str:
    return f'  %{result} = stablehlo.{text} {{recompute.phase = "{phase}"}} : {T}'


STEP = "\n".join(
    [
        f"func.func @f(%x: {T}, %ct: {T}) -> ({T}, {T}, {T}, {T}) {{",
        "  %k = stablehlo.constant dense<1.0> : tensor<256xf32>",
        line("a", "sine %x", "primal"),
        line("b", "tanh %a", "primal"),
        line("c", "add %b, %b", "primal"),
        f'  %v = stablehlo.reshape %b {{recompute.phase = "primal"}} : ({T}) -> tensor<2x128xf32>',
        line("g5", "multiply %ct, %b", "gradient"),
        line("g6", "multiply %g5, %a", "gradient"),
        line("g7", "multiply %g6, %a", "gradient"),
        f'  %w = stablehlo.reshape %v {{recompute.phase = "gradient"}} : (tensor<2x128xf32>) -> {T}',
        line("g9", "multiply %g7, %w", "gradient"),
        line("g10", "multiply %g9, %b", "gradient"),
        line("later", "cosine %a", "primal"),
        line("g12", "multiply %g9, %k", "gradient"),
        line("g13", "multiply %g12, %c", "gradient"),
        f"  func.return %g10, %later, %g13, %c : {T}, {T}, {T}, {T}",
        "}",
    ]
)


@pytest.mark.parametrize(
    ("served", "inputs", "insertion", "freed"),
    [
        ("b", "x", 10, 1024),  # its last gradient reader is the one behind the copies
        ("b", "x", 11, 0),  # there all of its readers have run
        ("b", "x", 9, 0),  # a view of it, which is not recomputed, is read at that very place
        ("bv", "x", 5, 0),  # a view made in the backward pass still shows it
        ("b", "v", 10, 0),  # its copies read it
        ("a", "x", 6, 0),  # a later forward pass reads it
        ("x", "", 5, 0),  # arguments are there anyway
        ("k", "", 12, 0),  # so are constants
        ("c", "", 13, 0),  # so is what the function returns
    ],
)
def test_copies_free_the_bytes_of_their_originals(served: str, inputs: str, insertion: int, freed: int) -> None:
    step, value = named_step(STEP)
    assert freed_bytes(step.graph, numbers(step, value, served), numbers(step, value, inputs), insertion) == freed


def test_value_with_finished_forward_readers_is_freed() -> None:
    step, value = named_step(STEP.replace("cosine %a", "cosine %x"))
    assert freed_bytes(step.graph, numbers(step, value, "a"), [], 6) == 1024
    assert freed_bytes(step.graph, numbers(step, value, "a"), [], 7) == 1024
    assert freed_bytes(step.graph, numbers(step, value, "a"), [], 8) == 0


@pytest.mark.parametrize(
    ("inputs", "insertion", "pinned"),
    [
        ("b", 11, 1024),
        ("bv", 11, 1024),  # two views of the same bytes
        ("b", 10, 0),  # its last reader runs right after the copies
        ("ab", 12, 2048),
        ("xkc", 14, 0),  # arguments, constants, and what is returned, stay anyway
    ],
)
def test_copies_pin_the_bytes_of_their_operands(inputs: str, insertion: int, pinned: int) -> None:
    step, value = named_step(STEP)
    assert pinned_bytes(step.graph, numbers(step, value, inputs), insertion) == pinned
