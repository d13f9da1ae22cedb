"""`stablehlo.rng`: numbers from a hidden state, the same in each execution, within their limits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal


def _draw(low: Any, high: Any, element: str, distribution: str = "UNIFORM", count: int = 4000) -> tuple[Any, ...]:
    line = (
        f"stablehlo.rng %a, %b, %s, distribution = {distribution} : (tensor<{element}>, tensor<{element}>,"
        f" tensor<1xi64>) -> tensor<{count}x{element}>"
    )
    text = f"""
    func.func @main(%a: tensor<{element}>, %b: tensor<{element}>)
        -> (tensor<{count}x{element}>, tensor<{count}x{element}>) {{
      %s = stablehlo.constant dense<{count}> : tensor<1xi64>
      %0 = {line}
      %1 = {line}
      return %0, %1 : tensor<{count}x{element}>, tensor<{count}x{element}>
    }}"""
    return tuple(execute(function_named(parse_module(text)), [low, high]))


@pytest.mark.parametrize(
    ("low", "high", "element"),
    [
        (np.float32(-1), np.float32(3), "f32"),
        # All numbers between them would be rounded to one of them.
        (ml_dtypes.bfloat16(256), ml_dtypes.bfloat16(258), "bf16"),
        (np.int8(-100), np.int8(100), "i8"),
        (np.uint64(2**63), np.uint64(2**64 - 1), "ui64"),
        (np.int64(-(2**62)), np.int64(2**62), "i64"),
    ],
)
def test_uniform_numbers_exclude_the_upper_limit(low: Any, high: Any, element: str) -> None:
    first, second = _draw(np.array(low), np.array(high), element)
    for numbers in (first, second):
        assert numbers.min() >= low
        assert numbers.max() < high
    if element != "bf16":
        assert (first != second).any()
        middle = float(low) / 2 + float(high) / 2
        assert abs(numbers.astype(np.float64).mean() - middle) < 0.05 * (float(high) - float(low))


def test_each_execution_draws_the_same_numbers() -> None:
    low, high = np.array(0, np.float32), np.array(1, np.float32)
    for first, other in zip(_draw(low, high, "f32"), _draw(low, high, "f32"), strict=True):
        np.testing.assert_array_equal(first, other)


def test_normal_numbers_have_mean_and_deviation() -> None:
    numbers, _ = _draw(np.array(5, np.float64), np.array(0.5, np.float64), "f64", "NORMAL")
    assert abs(numbers.mean() - 5) < 0.05
    assert abs(numbers.std() - 0.5) < 0.05


def test_an_empty_range_gives_its_lower_limit() -> None:
    numbers, _ = _draw(np.array(3, np.int32), np.array(3, np.int32), "i32", count=2)
    assert numbers.tolist() == [3, 3]


def test_shape_must_be_that_of_the_result() -> None:
    text = """
    func.func @main(%s: tensor<1xi64>) -> tensor<2xf32> {
      %a = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.rng %a, %a, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    with pytest.raises((Refusal, ValueError), match=r"its shape operand is \[3\], but its result has shape \[2\]"):
        execute(function_named(parse_module(text)), [np.array([3])])
