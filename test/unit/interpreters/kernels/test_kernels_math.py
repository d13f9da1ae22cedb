"""Kernels of math, against numpy and Python, and bit for bit where the operation is exact."""

# JAX's types say little about lambdas, numpy's about ufuncs.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from recompute.test.unit.interpreters.evaluate import array
from recompute.test.unit.interpreters.kernels.arith_evaluation import apply, scalars, wrap

MATH: dict[str, Any] = {
    "absf": np.abs,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "roundeven": np.rint,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}


@pytest.mark.parametrize("name", sorted(MATH))
def test_math_functions_equal_numpy(name: str) -> None:
    x = array(np.linspace(0.1, 3, 40), "f32")
    np.testing.assert_array_equal(apply(f"math.{name}", x), MATH[name](x))


def test_math_functions_missing_in_numpy_are_exact() -> None:
    x = array([-1.5, -0.5, 0.5, 2.5], "f32")
    np.testing.assert_array_equal(apply("math.erf", x), np.array([math.erf(v) for v in x], np.float32))
    assert apply("math.round", x).tolist() == [-2.0, -1.0, 1.0, 3.0]
    np.testing.assert_allclose(apply("math.rsqrt", abs(x)), 1 / np.sqrt(abs(x)), rtol=1e-6)
    for name, compute in (("acos", np.arccos), ("asin", np.arcsin), ("atanh", np.arctanh)):
        np.testing.assert_array_equal(apply(f"math.{name}", x / 4), compute(x / 4))
    np.testing.assert_array_equal(apply("math.acosh", abs(x) + 1), np.arccosh(abs(x) + 1))
    np.testing.assert_array_equal(apply("math.powf", abs(x), x), np.power(abs(x), x))
    y = x[::-1].copy()
    np.testing.assert_array_equal(apply("math.atan2", x, y), np.arctan2(x, y))
    np.testing.assert_array_equal(apply("math.copysign", abs(x), x), x)


def test_integer_math_equals_python() -> None:
    x = array([0, 1, 8, -1, -128, 96], "i8")
    assert apply("math.ctlz", x).tolist() == [8, 7, 4, 0, 0, 1]
    assert apply("math.cttz", x).tolist() == [8, 0, 3, 0, 7, 5]
    assert apply("math.ctpop", x).tolist() == [0, 1, 1, 8, 1, 2]
    assert apply("math.absi", x).tolist() == [0, 1, 8, 1, -128, 96]
    assert apply("math.ipowi", x, array([3] * 6, "i8")).tolist() == [wrap(int(v) ** 3, 8) for v in x]
    result = scalars("%r = math.fpowi %a, %n : f32, i32", "f32", "%a: f32, %n: i32", np.float32(1.5), np.int32(3))
    assert result == np.float32(1.5**3)


def test_a_fused_multiply_add_is_rounded_once() -> None:
    """The result equals the exact fraction, rounded once, also for sums where rounding twice is wrong."""
    from fractions import Fraction

    generator = np.random.default_rng(0)
    a, b, c = (generator.normal(size=2000).astype(np.float32) for _ in range(3))
    c[::2] *= np.float32(2.0**-30)
    c[1::4] = -(a[1::4] * b[1::4])
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    result = apply("math.fma", a, b, c)
    for value, wanted in zip(result, exact, strict=True):
        near = [value, np.nextafter(value, np.float32(np.inf)), np.nextafter(value, np.float32(-np.inf))]
        assert min(near, key=lambda item: abs(Fraction(float(item)) - wanted)) == value
    assert np.any(result != a * b + c)
