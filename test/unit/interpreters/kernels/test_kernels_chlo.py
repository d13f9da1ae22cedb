"""Kernels of CHLO and sharding constraints, against JAX and known values."""

# JAX's types say little about lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels import chlo
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.test.unit.interpreters.evaluate import array, evaluate

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.linspace(-0.95, 0.95, 24, dtype=np.float32).reshape(4, 6)
POSITIVE = X + np.float32(2)


def both(function: Callable[..., Any], *inputs: Any) -> tuple[list[Any], list[Any]]:
    """Return the results of JAX, and those of the interpreter for the program that JAX lowers."""
    compiled = jax.jit(function)
    program = function_named(parse_module(compiled.lower(*inputs).as_text(), "jax.mlir"))
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*inputs))]
    return list(execute(program, [np.asarray(actual) for actual in inputs])), expected


@pytest.mark.parametrize(
    ("word", "inputs"),
    [
        *((word, (X,)) for word in "acos asin asinh atan atanh cosh erf erf_inv erfc sinh square tan".split()),
        *((word, (POSITIVE,)) for word in "acosh digamma lgamma bessel_i1e".split()),
        ("zeta", (POSITIVE, POSITIVE)),
        ("polygamma", (np.full_like(X, 2), POSITIVE)),
    ],
)
def test_chlo_functions_are_close_to_jax(word: str, inputs: tuple[Any, ...]) -> None:
    pytest.importorskip("scipy")
    for result, expected in zip(*both(getattr(lax, word), *inputs), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-6)


SPECIAL = array([[0.0, -0.0, np.nan, -np.nan, 1, np.inf, -np.inf, 2, 2, 0.0, -0.0], range(11)], "f32")


@pytest.mark.parametrize("k", [0, 1, 5, 11])
@pytest.mark.parametrize("operand", [SPECIAL, np.array([[3, 1, 3, 2] * 3, [0] * 12], np.int32)])
def test_top_k_orders_as_jax_does(operand: Any, k: int) -> None:
    """Zeros of both signs, NaNs and equal elements are ordered as in JAX, with the same indices."""
    for result, expected in zip(*both(lambda x: lax.top_k(x, k), operand), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_next_after_equals_jax(dtype: str) -> None:
    x = jnp.array([0.0, 1.0, -1.0, 3e38, 2.0], dtype)
    (result,), (expected,) = both(lax.nextafter, x, x[::-1])
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_mulhi_equals_jax() -> None:
    for values in (np.array([0, 1, 0xFFFFFFFF, 77777], np.uint32), np.array([-1, 2**31 - 1, -(2**31), 5], np.int32)):
        (result,), (expected,) = both(lax.mulhi, values, values[::-1].copy())
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("is_inf", [0, 1, 1, 0]), ("is_pos_inf", [0, 1, 0, 0]), ("is_neg_inf", [0, 0, 1, 0])],
)
def test_infinity_tests_distinguish_the_sign(word: str, expected: list[int]) -> None:
    operand = array([1.0, np.inf, -np.inf, np.nan], "bf16")
    results = evaluate(f"%r = chlo.{word} %a : T -> tensor<4xi1>", "tensor<4xi1>", operand)
    assert results.tolist() == [bool(item) for item in expected]


def test_conjugate_negates_the_imaginary_part() -> None:
    operand = array([1 + 2j, -3j], "complex<f32>")
    assert evaluate("%r = chlo.conj %a : T -> T", "tensor<2xcomplex<f32>>", operand).tolist() == [1 - 2j, 3j]


def test_sharding_constraint_returns_its_operand() -> None:
    body = "%t = stablehlo.transpose %a, dims = [1, 0] : (T) -> tensor<6x4xf32>\n"
    body += "%r = sdy.sharding_constraint %t <@mesh, [{}, {}]> : tensor<6x4xf32>"
    np.testing.assert_array_equal(evaluate(body, "tensor<6x4xf32>", X), X.T)


def test_without_scipy_the_operation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise builtins.ImportError(name)

    monkeypatch.setattr(chlo, "import_module", missing)
    assert evaluate("%r = chlo.square %a : T -> T", "tensor<4x6xf32>", X).shape == X.shape
    with pytest.raises(Refusal, match=r"f.mlir:2:6: error: chlo.erf .*erf needs scipy"):
        evaluate("%r = chlo.erf %a : T -> T", "tensor<4x6xf32>", X)
