"""Kernels of elementwise operations where StableHLO, numpy and C differ; JAX decides where the specification is
open."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from recompute.interpreters.kernels.arrays import Array
from recompute.test.unit.interpreters.evaluate import TYPES, array, convert, elementwise, evaluate, tensor

LOW, HIGH = -(2**31), 2**31 - 1
NAN, INF = np.nan, np.inf


def same_bits(actual: Array, expected: Array) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes(), f"{actual} is not {expected}"


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("shift_left", [1, 1, 1, -1], [31, 32, 33, -1], [LOW, 0, 0, 0]),
        ("shift_right_arithmetic", [LOW, LOW, 5, -1], [31, 32, 40, -1], [-1, -1, 0, -1]),
        ("shift_right_logical", [-1, -1, -1, 5], [31, 32, -1, 1], [1, 0, 0, 2]),
        ("divide", [7, -7, 7, -7, LOW, 5], [2, 2, -2, -2, -1, 0], [3, -3, -3, 3, LOW, -1]),
        ("remainder", [7, -7, 7, -7, LOW, 5], [2, 2, -2, -2, -1, 0], [1, -1, 1, -1, 0, 5]),
        ("power", [2, -2, 3, 1, -1, 0, 2], [31, 3, 0, -5, -3, -1, -1], [LOW, -8, 1, 1, -1, 0, 0]),
        ("add", [HIGH], [1], [LOW]),
        ("multiply", [LOW], [-1], [LOW]),
    ],
)
def test_integer_operations_follow_the_specification(
    name: str, a: list[int], b: list[int], expected: list[int]
) -> None:
    same_bits(elementwise(name, array(a, "i32"), array(b, "i32")), array(expected, "i32"))


@pytest.mark.parametrize(
    ("name", "operand", "expected"),
    [
        ("popcnt", array([0, -1, 7], "i32"), [0, 32, 3]),
        ("popcnt", array([-1, 5], "i4"), [4, 2]),
        ("count_leading_zeros", array([0, 1, -1], "i32"), [32, 31, 0]),
        ("count_leading_zeros", array([1, -8], "i4"), [3, 0]),
        ("not", array([0, 5], "i32"), [-1, -6]),
        ("not", array([True, False], "i1"), [False, True]),
        ("abs", array([LOW, -1], "i32"), [LOW, 1]),
        ("negate", array([LOW, 1], "i32"), [LOW, -1]),
        ("sign", array([-3, 0, 3], "i32"), [-1, 0, 1]),
        ("negate", array([1, 0], "ui32"), [2**32 - 1, 0]),
    ],
)
def test_bit_operations_follow_the_specification(name: str, operand: Array, expected: list[int]) -> None:
    same_bits(elementwise(name, operand), np.array(expected, np.int64).astype(operand.dtype))


def test_four_bits_wrap_and_shift_within_four_bits() -> None:
    same_bits(elementwise("add", array([7], "i4"), array([1], "i4")), array([-8], "i4"))
    same_bits(elementwise("shift_right_logical", array([-1, -1], "i4"), array([1, 4], "i4")), array([7, 0], "i4"))
    same_bits(elementwise("shift_left", array([3, 3], "i4"), array([2, 4], "i4")), array([-4, 0], "i4"))
    same_bits(
        elementwise("shift_right_arithmetic", array([9, 9, 7], "ui4"), array([1, 4, 1], "ui4")),
        array([12, 15, 3], "ui4"),
    )
    same_bits(elementwise("shift_right_arithmetic", array([-7, -7], "i4"), array([1, -1], "i4")), array([-4, -1], "i4"))
    same_bits(elementwise("divide", array([15], "ui4"), array([0], "ui4")), array([15], "ui4"))


@pytest.mark.parametrize("name", ["divide", "remainder", "shift_left", "shift_right_logical", "shift_right_arithmetic"])
@pytest.mark.parametrize("element", ["i32", "ui32", "i8", "ui8"])
def test_integer_operations_equal_jax(name: str, element: str) -> None:
    generator = np.random.default_rng(0)
    edges = [0, 1, 2, 7, 31, 32, 127, 128, 255, -1, -2, -128, LOW, HIGH]
    values = array([*edges, *generator.integers(LOW, HIGH, 200)], element)
    a, b = values, generator.permutation(values)
    primitive = {"divide": jax.lax.div, "remainder": jax.lax.rem}.get(name) or getattr(jax.lax, name)
    same_bits(elementwise(name, a, b), np.asarray(primitive(a, b)))


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("maximum", [-0.0, 0.0, NAN, 1.0], [0.0, -0.0, 1.0, NAN], [0.0, 0.0, NAN, NAN]),
        ("minimum", [-0.0, 0.0, -0.0, NAN], [0.0, -0.0, -0.0, 1.0], [-0.0, -0.0, -0.0, NAN]),
        ("remainder", [5.5, -5.5, 5.5, 1.0], [2.0, 2.0, -2.0, INF], [1.5, -1.5, 1.5, 1.0]),
        ("divide", [1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [INF, -INF, NAN]),
        ("power", [2.0, -2.0, 0.0, -8.0], [0.5, 2.0, 0.0, 1 / 3], [np.sqrt(np.float32(2)), 4.0, 1.0, NAN]),
        ("atan2", [0.0, -0.0], [-1.0, -1.0], [np.pi, -np.pi]),
    ],
)
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_float_operations_follow_the_specification(
    name: str, a: list[float], b: list[float], expected: list[float], element: str
) -> None:
    result = elementwise(name, array(a, element), array(b, element)).astype(np.float64)
    wanted = array(expected, element).astype(np.float64)
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(np.signbit(result)[wanted == 0], np.signbit(wanted)[wanted == 0])


@pytest.mark.parametrize(
    ("name", "operand", "expected"),
    [
        ("sign", [-0.0, NAN, -2.0, INF], [-0.0, NAN, -1.0, 1.0]),
        ("round_nearest_afz", [0.5, -2.5, 0.49999997, -0.3], [1.0, -3.0, 0.0, -0.0]),
        ("round_nearest_even", [0.5, -2.5, 1.5, -0.3], [0.0, -2.0, 2.0, -0.0]),
        ("rsqrt", [4.0, 0.0, -0.0, -1.0], [0.5, INF, -INF, NAN]),
        ("logistic", [0.0, -1e4, 1e4], [0.5, 0.0, 1.0]),
        ("cbrt", [-8.0], [-2.0]),
        ("log", [0.0, -1.0], [-INF, NAN]),
        ("exponential_minus_one", [-INF, 0.0], [-1.0, 0.0]),
    ],
)
def test_float_functions_follow_the_specification(name: str, operand: list[float], expected: list[float]) -> None:
    result = elementwise(name, array(operand, "f32"))
    np.testing.assert_array_equal(result, array(expected, "f32"))
    np.testing.assert_array_equal(np.signbit(result[result == 0]), np.signbit(array(expected, "f32")[result == 0]))


def test_small_floats_round_once() -> None:
    a, b = array([256.0, 1.0], "bf16"), array([1.0, 0.00390625], "bf16")
    same_bits(elementwise("add", a, b), array([256.0, 1.0], "bf16"))
    same_bits(elementwise("divide", array([1.0], "bf16"), array([3.0], "bf16")), array([1 / 3], "bf16"))
    same_bits(elementwise("multiply", array([448.0], "f8E4M3FN"), array([2.0], "f8E4M3FN")), array([NAN], "f8E4M3FN"))


def test_f32_stays_f32_and_scalars_stay_arrays() -> None:
    for name in ("tanh", "sine", "rsqrt", "sign", "round_nearest_afz", "logistic", "negate"):
        result = elementwise(name, array(0.3, "f32"))
        assert isinstance(result, np.ndarray) and result.dtype == np.float32 and result.shape == ()


def test_bits_do_not_depend_on_the_layout() -> None:
    values = np.random.default_rng(0).normal(size=(37, 53)).astype(np.float32)
    for name in ("exponential", "tanh", "sine", "log_plus_one", "logistic"):
        body = f"%t = stablehlo.transpose %a, dims = [1, 0] : (T) -> tensor<53x37xf32>\n%r = stablehlo.{name} %t"
        strided = evaluate(f"{body} : tensor<53x37xf32>", "tensor<53x37xf32>", values)
        same_bits(strided, elementwise(name, np.ascontiguousarray(values.T)))
        assert strided.flags.c_contiguous and strided.flags.owndata


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("f32", "i32", [NAN, INF, -INF, 3.7, -3.7, 3e9], [0, HIGH, LOW, 3, -3, HIGH]),
        ("f32", "ui8", [-1.0, 255.9, 300.0, NAN], [0, 255, 255, 0]),
        ("f32", "i4", [7.9, 9.0, -20.0], [7, 7, -8]),
        ("f32", "i1", [0.0, -0.0, NAN, 0.1], [False, False, True, True]),
        ("i32", "i8", [300, -129], [44, 127]),
        ("i32", "ui32", [-1], [2**32 - 1]),
        ("i1", "f32", [True, False], [1.0, 0.0]),
        ("f32", "bf16", [1.00390625, 1.01171875, 3.4e38], [1.0, 1.015625, INF]),
        ("f64", "bf16", [1.00390625 + 2**-40], [1.0078125]),
        ("i32", "bf16", [257, 259], [256.0, 260.0]),
        ("f32", "f8E4M3FN", [1000.0, 0.3], [NAN, 0.3125]),
        ("f32", "f32", [-0.0], [-0.0]),
        ("complex<f32>", "f32", [1 + 2j], [1.0]),
    ],
)
def test_conversions_follow_the_specification(
    source: str, target: str, values: list[float], expected: list[float]
) -> None:
    result = convert(array(values, source), target)
    assert result.dtype == TYPES[target]
    np.testing.assert_array_equal(result.astype(np.float64), np.array(expected, np.float64))


@pytest.mark.parametrize("target", ["i32", "ui32", "i8", "ui8", "bf16", "f16", "i1"])
def test_conversions_equal_jax(target: str) -> None:
    generator = np.random.default_rng(0)
    edges = [0.0, -0.0, 0.5, -0.5, 2.5e9, -2.5e9, 4.3e9, 1e20, -1e20, NAN, INF, -INF, 127.5, 128.0, 255.5, 256.0]
    values = array([*edges, *generator.normal(0, 1e3, 500), *generator.normal(0, 1e9, 500)], "f32")
    same = [index for index in range(values.size) if not np.isnan(values[index]) or target not in ("bf16", "f16")]
    expected = np.asarray(jax.lax.convert_element_type(values, TYPES[target]))
    same_bits(convert(values, target)[same], expected[same])


@pytest.mark.parametrize(
    ("format_", "bits", "expected"),
    [
        ("e5m10", [0x7FC00001, 0xFF800001], [0x7FC00001, 0xFF800001]),
        ("e5m0", [0x7FC00001, 0xFF800001, 0x7FFFFFFF], [0x7F800000, 0xFF800000, 0x7F800000]),
        ("e8m0", [0x3FC00000, 0x40400000, 0x3FA00000], [0x40000000, 0x40000000, 0x3F800000]),
    ],
)
def test_reduced_precision_of_nan_and_without_mantissa(format_: str, bits: list[int], expected: list[int]) -> None:
    operand = np.array(bits, np.uint32).view(np.float32)
    results = evaluate(f"%r = stablehlo.reduce_precision %a, format = {format_} : T", tensor(operand), operand)
    assert results.view(np.uint32).tolist() == expected


def test_bitcast_changes_the_width() -> None:
    bits = evaluate(
        "%r = stablehlo.bitcast_convert %a : (T) -> tensor<2xi32>", "tensor<2xi32>", array([1, -0.0], "f32")
    )
    same_bits(bits, array([0x3F800000, LOW], "i32"))
    words = evaluate("%r = stablehlo.bitcast_convert %a : (T) -> tensor<1x4xui8>", "tensor<1x4xui8>", bits[:1])
    same_bits(words, array([[0, 0, 0x80, 0x3F]], "ui8"))
    back = evaluate("%r = stablehlo.bitcast_convert %a : (T) -> tensor<1xf32>", "tensor<1xf32>", words)
    same_bits(back, array([1.0], "f32"))
    nibbles = evaluate(
        "%r = stablehlo.bitcast_convert %a : (T) -> tensor<1x2xui4>", "tensor<1x2xui4>", array([0x4F], "ui8")
    )
    same_bits(nibbles, array([[15, 4]], "ui4"))


@pytest.mark.parametrize(
    ("direction", "kind", "expected"),
    [
        ("EQ", "FLOAT", [False, True, False]),
        ("NE", "FLOAT", [True, False, True]),
        ("LT", "FLOAT", [False, False, True]),
        ("GE", "FLOAT", [False, True, False]),
        ("EQ", "TOTALORDER", [True, False, False]),
        ("LT", "TOTALORDER", [False, True, True]),
    ],
)
def test_comparisons_follow_the_specification(direction: str, kind: str, expected: list[bool]) -> None:
    a, b = array([NAN, -0.0, 1.0], "f32"), array([NAN, 0.0, 2.0], "f32")
    body = f"%r = stablehlo.compare {direction}, %a, %b, {kind} : (T, T) -> tensor<3xi1>"
    same_bits(evaluate(body, "tensor<3xi1>", a, b), array(expected, "i1"))


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
def test_total_order_ranks_signed_zeros_and_nans(element: str) -> None:
    ordered = array([-INF, -1.0, -0.0, 0.0, 1.0, INF, NAN], element)
    ordered = np.concatenate([-ordered[-1:], ordered])
    a, b = np.repeat(ordered, 8), np.tile(ordered, 8)
    body = "%r = stablehlo.compare LT, %a, %b, TOTALORDER : (T, T) -> tensor<64xi1>"
    places = np.repeat(np.arange(8), 8), np.tile(np.arange(8), 8)
    np.testing.assert_array_equal(evaluate(body, "tensor<64xi1>", a, b), places[0] < places[1])


def test_select_and_clamp_take_scalars() -> None:
    a, b = array([1.0, 2.0], "f32"), array([3.0, 4.0], "f32")
    body = "%r = stablehlo.select %c, %a, %b : tensor<i1>, T"
    same_bits(evaluate(body, "tensor<2xf32>", a, b, array(False, "i1")), b)
    body = "%r = stablehlo.clamp %b, %a, %c : (tensor<f32>, T, tensor<f32>) -> T"
    results = evaluate(body, "tensor<3xf32>", array([-1, 0.5, NAN], "f32"), array(0.0, "f32"), array(1.0, "f32"))
    np.testing.assert_array_equal(results, [0.0, 0.5, NAN])


@pytest.mark.parametrize("name", ["maximum", "power", "sign", "tanh", "remainder", "round_nearest_afz"])
def test_elementwise_operations_accept_empty_tensors(name: str) -> None:
    operand = np.empty((0, 3), np.float32)
    operands = [operand] * (2 if name in ("maximum", "power", "remainder") else 1)
    assert elementwise(name, *operands).shape == (0, 3)
