"""The counts of loops, which messages about failed proofs compare."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.proof.verdicts.loop_difference import WHILE, LoopCount, count_of, loop_difference
from recompute.support.operations import name_of

LOOP = """
func.func @f(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %start = stablehlo.constant dense<START> : tensor<i32>
  %limit = stablehlo.constant dense<LIMIT> : tensor<i32>
  %step = stablehlo.constant dense<STEP> : tensor<i32>
  %held = stablehlo.optimization_barrier %limit : tensor<i32>
  %r:3 = stablehlo.while(%i = %start, %v = %x, %l = %held) : tensor<i32>, tensor<4xf32>, tensor<i32>
  cond {
    %p = stablehlo.compare COMPARE : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %t = stablehlo.BODY %v : tensor<4xf32>
    %j = stablehlo.NEXT : tensor<i32>
    stablehlo.return %j, %t, %l : tensor<i32>, tensor<4xf32>, tensor<i32>
  }
  func.return %r#1 : tensor<4xf32>
}
"""


def loop(
    compare: str = "LT, %i, %limit",
    following: str = "add %i, %step",
    numbers: tuple[int, int, int] = (0, 8, 1),
    body: str = "sine",
):
    start, limit, step = map(str, numbers)
    text = LOOP.replace("START", start).replace("LIMIT", limit).replace("STEP", step)
    text = text.replace("COMPARE", compare).replace("NEXT", following).replace("BODY", body)
    module = parse_module(text, "f.mlir")
    return next(op for op in module.walk() if name_of(op) == WHILE)


@pytest.mark.parametrize(
    ("compare", "following", "numbers", "text"),
    [
        ("LT, %i, %limit", "add %i, %step", (0, 8, 1), "i = 0; i < 8; i += 1 (8 iterations)"),
        ("LT, %i, %l", "add %step, %i", (0, 9, 2), "i = 0; i < 9; i += 2 (5 iterations)"),
        ("GE, %limit, %i", "add %i, %step", (1, 8, 1), "i = 1; i <= 8; i += 1 (8 iterations)"),
        ("GT, %i, %limit", "subtract %i, %step", (8, 0, 3), "i = 8; i > 0; i -= 3 (3 iterations)"),
        ("GE, %i, %limit", "subtract %i, %step", (1, 1, 1), "i = 1; i >= 1; i -= 1 (1 iteration)"),
        ("LT, %i, %limit", "subtract %i, %step", (0, 8, 1), "i = 0; i < 8; i -= 1"),
        ("NE, %i, %limit", "add %i, %step", (0, 8, 1), "i = 0; i != 8; i += 1"),
        ("LT, %i, %n", "add %i, %step", (0, 8, 1), "i = 0; i < ?; i += 1"),
        ("LT, %i, %limit", "multiply %i, %step", (1, 8, 2), "i = 1; i < 8; i changes"),
    ],
)
def test_counts_are_read(compare: str, following: str, numbers: tuple[int, int, int], text: str) -> None:
    assert str(count_of(loop(compare, following, numbers))) == text


def test_condition_without_counter_has_no_count() -> None:
    assert count_of(loop("LT, %n, %limit")) is None


def test_steps_of_zero_have_no_number_of_iterations() -> None:
    assert LoopCount(0, "<", 8, 0).iterations is None


def test_first_operations_of_bodies_are_compared() -> None:
    difference = loop_difference(loop(), loop(body="cosine"))
    expected = "before stablehlo.sine at f.mlir:12:10, after stablehlo.cosine at f.mlir:12:10"
    assert difference == f"the first operations that differ in their bodies: {expected}"


def test_equal_loops_have_no_difference() -> None:
    assert loop_difference(loop(), loop()) == ""


def test_loops_without_regions_have_no_difference() -> None:
    """`prove` does not verify modules, so it may compare loops that the verifier rejects."""
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.while"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }"""
    without_regions, same = (next(op for op in parse_module(text).walk() if name_of(op) == WHILE) for _ in range(2))
    assert loop_difference(without_regions, same) == ""
