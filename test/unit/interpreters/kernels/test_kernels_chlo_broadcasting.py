"""Kernels of CHLO's broadcasting operations and constants, against numpy and scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recompute.test.unit.interpreters.evaluate import NAMES, TYPES, array, evaluate, tensor

COLUMN = np.array([[1.5], [-2.25]], np.float32)
ROW = np.array([0.5, 3.0, -4.0], np.float32)
INTEGERS = np.array([[7], [-9]], np.int32), np.array([2, 3, 1], np.int32)
POSITIVE = np.array([[2.5], [3.0]], np.float32), np.array([1.5, 2.0, 4.0], np.float32)


def check(word: str, expected: Any, *operands: Any, attributes: str = "", rtol: float = 0) -> None:
    """Compare the shape, type and elements of a broadcasting operation with `expected`."""
    names = ", ".join(f"%{letter}" for letter, _ in zip("abc", operands, strict=False))
    result = f"tensor<{'x'.join([*map(str, expected.shape), NAMES[expected.dtype]])}>"
    types = ", ".join(map(tensor, operands))
    results = evaluate(f"%r = chlo.broadcast_{word} {names} {attributes} : ({types}) -> {result}", result, *operands)
    assert results.dtype == expected.dtype
    np.testing.assert_allclose(results, expected, rtol=rtol, strict=True)


@pytest.mark.parametrize(
    ("word", "compute"),
    [
        ("add", np.add),
        ("subtract", np.subtract),
        ("multiply", np.multiply),
        ("divide", np.divide),
        ("maximum", np.maximum),
        ("minimum", np.minimum),
        ("remainder", np.fmod),
        ("atan2", np.arctan2),
        ("next_after", np.nextafter),
    ],
)
def test_float_operations_equal_numpy(word: str, compute: Callable[..., Any]) -> None:
    check(word, compute(COLUMN, ROW), COLUMN, ROW, rtol=1e-6 if word == "atan2" else 0)
    check(word, compute(ROW, COLUMN), ROW, COLUMN, rtol=1e-6 if word == "atan2" else 0)


def test_power_equals_numpy() -> None:
    check("power", np.power(*POSITIVE), *POSITIVE, rtol=1e-6)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("and", [[7 & 2, 7 & 3, 7 & 1], [-9 & 2, -9 & 3, -9 & 1]]),
        ("or", [[7 | 2, 7 | 3, 7 | 1], [-9 | 2, -9 | 3, -9 | 1]]),
        ("xor", [[7 ^ 2, 7 ^ 3, 7 ^ 1], [-9 ^ 2, -9 ^ 3, -9 ^ 1]]),
        ("shift_left", [[28, 56, 14], [-36, -72, -18]]),
        ("shift_right_arithmetic", [[1, 0, 3], [-3, -2, -5]]),
        ("shift_right_logical", [[1, 0, 3], [(2**32 - 9) >> 2, (2**32 - 9) >> 3, (2**32 - 9) >> 1]]),
        ("divide", [[3, 2, 7], [-4, -3, -9]]),
        ("remainder", [[1, 1, 0], [-1, 0, 0]]),
    ],
)
def test_integer_operations_equal_numpy(word: str, expected: list[list[int]]) -> None:
    check(word, np.array(expected, np.int32), *INTEGERS)


@pytest.mark.parametrize("word", ["polygamma", "zeta"])
def test_special_functions_equal_scipy(word: str) -> None:
    special = pytest.importorskip("scipy.special")
    column = np.array([[2.0], [3.0]], np.float32)
    check(word, getattr(special, word)(column, POSITIVE[1]).astype(np.float32), column, POSITIVE[1], rtol=2e-5)


def test_explicit_dimensions_align_the_operand_of_lower_rank() -> None:
    matrix, vector = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([10, 20], np.float32)
    for operands in ((matrix, vector), (vector, matrix)):
        check("add", matrix + vector[:, None], *operands, attributes="{broadcast_dimensions = array<i64: 0>}")


def test_small_floats_are_rounded_once() -> None:
    left, right = array([[1.0], [3.0]], "bf16"), array([0.00390625, 257.0], "bf16")
    expected = (left.astype(np.float32) + right.astype(np.float32)).astype(TYPES["bf16"])
    results = evaluate(
        "%r = chlo.broadcast_add %a, %b : (T, tensor<2xbf16>) -> tensor<2x2xbf16>", "tensor<2x2xbf16>", left, right
    )
    np.testing.assert_array_equal(results.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(("order", "expected"), [("FLOAT", [[False, False]]), ("TOTALORDER", [[True, False]])])
def test_comparisons_equal_numpy(order: str, expected: list[list[bool]]) -> None:
    """Comparisons equal numpy's; -0.0 is less than 0.0 in the total order alone."""
    attributes = "{comparison_direction = #chlo<comparison_direction LT>, "
    attributes += f"compare_type = #chlo<comparison_type {order}>}}"
    operands = np.array([[-0.0]], np.float32), np.array([0.0, -1.0], np.float32)
    check("compare", np.array(expected), *operands, attributes=attributes)


def test_complex_operations_equal_numpy() -> None:
    check("complex", (COLUMN + 1j * ROW).astype(np.complex64), COLUMN, ROW)


@pytest.mark.parametrize("which", [np.array(True), np.array([True, False, True]), np.array([[False], [True]])])
def test_selection_equals_numpy(which: Any) -> None:
    check("select", np.where(which, COLUMN, ROW), which, COLUMN, ROW)


def test_constants_have_the_expected_value() -> None:
    results = evaluate("%r = chlo.constant dense<[1.0, 2.5]> : tensor<2xf32>", "tensor<2xf32>")
    assert results.tolist() == [1.0, 2.5]


@pytest.mark.parametrize(("value", "element"), [("2.5", "f32"), ("1.00390625", "bf16"), ("-3", "i32"), ("-1", "i1")])
def test_a_constant_has_the_shape_of_the_operand(value: str, element: str) -> None:
    body = f'%r = "chlo.constant_like"(%a) {{value = {value} : {element}}} : (T) -> tensor<2x1x{element}>'
    results = evaluate(body, f"tensor<2x1x{element}>", COLUMN)
    np.testing.assert_array_equal(results, np.full((2, 1), float(value)).astype(TYPES[element]), strict=True)
