"""Kernels of complex functions: zeros, infinities, NaN, and arguments where digits would cancel."""

# JAX's types say little about lambdas.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import product

import jax
import numpy as np
import pytest

from recompute.interpreters.kernels.arrays import Array
from recompute.interpreters.kernels.complex_numbers import of_parts, parts_of
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import array, elementwise, evaluate, tensor

NAN, INF = np.nan, np.inf
HUGE, TINY = float(np.finfo(np.float32).max), float(np.finfo(np.float32).smallest_normal)
Pair = tuple[float, float]


def numbers(pairs: list[Pair]) -> Array:
    return array([complex(*pair) for pair in pairs], "complex<f32>")


def pairs(values: Array) -> str:
    """Return real and imaginary parts as text, which shows the signs of zeros but not NaN payloads."""
    return str(list(zip(np.real(values).tolist(), np.imag(values).tolist(), strict=True)))


@pytest.mark.parametrize(
    ("name", "of", "gives"),
    [
        ("exponential", (0, -0.0), (1, -0.0)),
        ("exponential", (-INF, 1), (0.0, 0.0)),
        ("exponential", (INF, 0), (INF, 0)),
        ("exponential", (INF, INF), (NAN, NAN)),
        ("exponential", (-INF, -INF), (NAN, NAN)),
        ("exponential", (-INF, NAN), (NAN, NAN)),
        ("exponential_minus_one", (-0.0, 0.0), (-0.0, 0.0)),
        ("exponential_minus_one", (TINY, TINY), (TINY, TINY)),
        ("exponential_minus_one", (INF, -0.0), (INF, -0.0)),
        ("exponential_minus_one", (-INF, 2), (-1, 0)),
        ("exponential_minus_one", (HUGE, 0), (INF, 0)),
        ("exponential_minus_one", (NAN, 0), (NAN, 0)),
        ("exponential_minus_one", (-INF, INF), (NAN, NAN)),
        ("log_plus_one", (-1, 0), (-INF, 0)),
        ("log_plus_one", (1e-20, 0), (np.float32(1e-20), 0)),
        ("log_plus_one", (-1e-20, 1e-30), (np.float32(-1e-20), np.float32(1e-30))),
        ("log_plus_one", (-2, 0), (0, np.float32(np.pi))),
        ("log_plus_one", (INF, NAN), (INF, NAN)),
        ("log_plus_one", (NAN, 1), (NAN, NAN)),
        ("log_plus_one", (HUGE, HUGE), (np.float32(89.06941), np.float32(np.pi / 4))),
        ("logistic", (0, 0), (0.5, 0)),
        ("logistic", (-1e4, 1), (0, 0)),
        ("logistic", (1e4, 1), (1, 0)),
        ("rsqrt", (0, 0), (INF, NAN)),
        ("rsqrt", (4, 0), (0.5, 0.0)),
        ("rsqrt", (1, INF), (0, -0.0)),
        ("rsqrt", (NAN, INF), (0, -0.0)),
        ("sign", (-0.0, -0.0), (0, 0)),
        ("sign", (3, -4), (np.float32(0.6), np.float32(-0.8))),
        ("sign", (HUGE, HUGE), (np.float32(0.70710678), np.float32(0.70710678))),
        ("sign", (0, 1e-45), (0, 1)),
        ("sign", (INF, 1), (NAN, 0)),
        ("sign", (NAN, 1), (NAN, NAN)),
        ("sign", (1, NAN), (NAN, NAN)),
        ("cbrt", (8, 0), (2, 0)),
        ("cbrt", (-8, 0), (1, np.float32(np.sqrt(3)))),
        ("cbrt", (0, -8), (np.float32(np.sqrt(3)), -1)),
        ("cbrt", (0, 0), (0, 0)),
        ("cbrt", (INF, 0), (INF, NAN)),
        ("sqrt", (-INF, NAN), (NAN, INF)),
        ("log", (0, 0), (-INF, 0)),
        ("log", (-INF, NAN), (INF, NAN)),
        ("tanh", (INF, 1), (1, 0)),
    ],
)
def test_special_values_of_functions_are_exact(name: str, of: Pair, gives: Pair) -> None:
    assert pairs(elementwise(name, numbers([of]))) == pairs(numbers([gives]))


@pytest.mark.parametrize(
    ("name", "a", "b", "gives"),
    [
        ("divide", (0, 0), (0, 0), (NAN, NAN)),
        ("divide", (1, 0), (0, 0), (INF, NAN)),
        ("divide", (0, INF), (0, 0), (NAN, INF)),
        ("divide", (1, 1), (INF, INF), (0, 0)),
        ("divide", (1, 1), (NAN, INF), (0, -0.0)),
        ("divide", (INF, 0), (1, 1), (INF, -INF)),
        ("divide", (HUGE, HUGE), (HUGE, HUGE), (1, 0)),
        ("divide", (TINY, TINY), (TINY, -TINY), (0, 1)),
        ("divide", (1, 2), (3, 4), (np.float32(0.44), np.float32(0.08))),
        ("power", (0, 0), (0, 0), (1, 0)),
        ("power", (INF, 0), (-1, 0), (0, 0)),
        ("power", (2, 0), (-2, 0), (0.25, 0)),
        ("power", (0, 1), (2, 0), (-1, 0)),
        ("multiply", (INF, 0), (1, 1), (INF, INF)),
        ("multiply", (INF, INF), (1, 1), (NAN, INF)),
    ],
)
def test_special_values_of_binary_functions_are_exact(name: str, a: Pair, b: Pair, gives: Pair) -> None:
    result = elementwise(name, numbers([a]), numbers([b]))
    # Zeros come out with the sign of the last rounding.
    assert pairs(result + 0) == pairs(numbers([gives]) + 0)


@pytest.mark.parametrize(
    ("of", "gives"),
    [
        ((HUGE, HUGE), (0, INF)),
        ((-HUGE, HUGE), (0, -INF)),
        ((INF, HUGE), (INF, INF)),
        ((INF, INF), (NAN, INF)),
        ((3, 4), (-7, 24)),
        ((HUGE, 0.25), (INF, HUGE / 2)),
    ],
)
def test_squares_of_special_values_are_exact(of: Pair, gives: Pair) -> None:
    results = evaluate("%r = chlo.square %a : T -> T", "tensor<1xcomplex<f32>>", numbers([of]))
    np.testing.assert_allclose(results, numbers([gives]), rtol=4e-7)


@pytest.mark.parametrize(("name", "body"), [("remainder", "%a, %a"), ("floor", "%a")])
def test_operation_undefined_for_complex_is_refused(name: str, body: str) -> None:
    with pytest.raises(Refusal, match=rf"stablehlo.{name} is not defined for elements of type complex64"):
        evaluate(f"%r = stablehlo.{name} {body} : T", "tensor<1xcomplex<f32>>", numbers([(1, 1)]))


def grid() -> Array:
    parts = (0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, TINY, -TINY, HUGE, -HUGE)
    return numbers(list(product(parts, parts)))


@pytest.mark.parametrize("name", ["exponential_minus_one", "logistic", "exponential"])
def test_grid_of_special_values_agrees_with_jax(name: str) -> None:
    """Results agree with JAX in the kind of value: XLA is free in the signs of zeros, and flushes the smallest numbers
    to zero."""
    function = {"exponential_minus_one": jax.lax.expm1, "exponential": jax.lax.exp}.get(name, jax.lax.logistic)
    values = grid()
    result, expected = elementwise(name, values), np.asarray(function(values))
    for part, other in zip(parts_of(result), parts_of(expected), strict=True):
        np.testing.assert_allclose(part, other, rtol=3e-6, atol=2 * TINY)


@pytest.mark.parametrize("exponent", [-3, -8, -12, -20])
def test_log_plus_one_is_accurate_near_the_unit_circle(exponent: int) -> None:
    """The result is accurate where `|1 + z|` is nearly one, compared with decimals of eighty digits."""
    angles = np.linspace(0.1, 3.0, 29)
    values = ((1 + 10.0**exponent) * np.exp(1j * angles) - 1).astype(np.complex128)
    body = "%r = stablehlo.log_plus_one %a : tensor<29xcomplex<f64>>"
    result = _evaluate_f64(body, values)
    with localcontext() as context:
        context.prec = 80
        pairs = zip(*(part.tolist() for part in parts_of(values)), strict=True)
        squares = [(1 + Decimal(x)) ** 2 + Decimal(y) ** 2 for x, y in pairs]
        expected = [float(square.ln() / 2) for square in squares]
    np.testing.assert_allclose(np.real(result), expected, rtol=4e-15)


def _evaluate_f64(body: str, values: Array) -> Array:
    """Return the value of a function of complex f64, whose operand and result are passed as real and imaginary
    parts."""
    size = values.size
    text = f"""%c = stablehlo.complex %a, %b : tensor<{size}xcomplex<f64>>
        {body.replace("%r", "%d").replace("%a", "%c")}
        %x = stablehlo.real %d : (tensor<{size}xcomplex<f64>>) -> tensor<{size}xf64>
        %y = stablehlo.imag %d : (tensor<{size}xcomplex<f64>>) -> tensor<{size}xf64>
        %r = stablehlo.concatenate %x, %y, dim = 0 : (T, T) -> tensor<{2 * size}xf64>"""
    results = evaluate(text, f"tensor<{2 * size}xf64>", *(part.copy() for part in parts_of(values)))
    return of_parts(results[:size], results[size:])


@pytest.mark.parametrize(
    ("name", "function"), [("tanh", np.tanh), ("sine", np.sin), ("sqrt", np.sqrt), ("log", np.log)]
)
def test_functions_are_rounded_once(name: str, function: np.ufunc) -> None:
    """Complex f32 functions are computed in f64 and rounded once; f32 alone would be off by more than half a unit."""
    generator = np.random.default_rng(0)
    values = (generator.normal(size=2000) + 1j * generator.normal(size=2000)).astype(np.complex64)
    expected = np.asarray(function(values.astype(np.complex128))).astype(np.complex64)
    assert elementwise(name, values).tobytes() == expected.tobytes()


def test_a_complex_number_is_true_by_its_real_part() -> None:
    values = numbers([(-1, 0), (0, 1), (-0.0, NAN), (NAN, 0)])
    results = evaluate(f"%r = stablehlo.convert %a : ({tensor(values)}) -> tensor<4xi1>", "tensor<4xi1>", values)
    assert results.tolist() == [True, False, False, True]
