"""Kernels of random bits, sorting and the gradient of pooling, bit for bit as JAX computes them on the CPU."""

# JAX's types say little about lambdas.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from recompute.interpreters.executor import execute, function_named
from recompute.interpreters.kernels.arrays import Array
from recompute.interpreters.kernels.random_bits import philox
from recompute.mlir_io.parser import parse_module


def both(function: Callable[..., Any], *inputs: Any) -> tuple[list[Array], list[Array]]:
    """Return the results of JAX, and those of the interpreter for the program that JAX lowers."""
    compiled = jax.jit(function)
    text = compiled.lower(*inputs).as_text()
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*inputs))]
    program = function_named(parse_module(text, "jax.mlir"))
    return list(execute(program, [np.asarray(actual) for actual in inputs])), expected


def check(function: Callable[..., Any], *inputs: Any) -> None:
    for result, expected in zip(*both(function, *inputs), strict=True):
        assert result.dtype == expected.dtype and result.shape == expected.shape
        np.testing.assert_array_equal(result, expected)


KEYS = [jnp.array(key, jnp.uint32) for key in ([1, 2, 3, 4], [0xFFFFFFFF, 7, 0xFFFFFFFE, 0xFFFFFFFF])]


@pytest.mark.slow("1", "3", "5", "7")
@pytest.mark.parametrize("algorithm", ["RNG_THREE_FRY", "RNG_PHILOX", "RNG_DEFAULT"])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *((shape, "uint32") for shape in ((), (1,), (5,), (8,), (3, 5), (3, 4, 5), (2, 0), (128, 3))),
        *((shape, dtype) for shape in ((), (1,), (2, 3), (5, 3), (0, 2)) for dtype in ("uint16", "uint8", "uint64")),
    ],
)
def test_random_bits_equal_jax(algorithm: str, shape: tuple[int, ...], dtype: str) -> None:
    with jax.enable_x64(dtype == "uint64"):
        for key in KEYS:
            check(
                lambda key: lax.rng_bit_generator(
                    key, shape, dtype=getattr(jnp, dtype), algorithm=getattr(lax.RandomAlgorithm, algorithm)
                ),
                key,
            )


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX", "DEFAULT"])
@pytest.mark.parametrize(("element", "integer"), [("f32", "ui32"), ("f64", "ui64"), ("bf16", "ui16"), ("i64", "ui64")])
def test_other_types_have_the_bits_of_the_unsigned_integer(algorithm: str, element: str, integer: str) -> None:
    first, other = (_generated(algorithm, type_, (3, 5)) for type_ in (element, integer))
    assert [array.tobytes() for array in first] == [array.tobytes() for array in other]
    assert first[1].shape == (3, 5)


@pytest.mark.parametrize("element", ["ui4", "i4", "ui2"])
def test_narrow_integers_have_the_lowest_bits(element: str) -> None:
    width = int(element[-1])
    narrow, bytes_ = (_generated("THREE_FRY", type_, (7,))[1].astype(np.int8) for type_ in (element, "ui8"))
    assert ((narrow ^ bytes_) & ((1 << width) - 1)).tolist() == [0] * 7


def _generated(algorithm: str, element: str, shape: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], ...]:
    result = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    text = f"""func.func @main(%s: tensor<2xui64>) -> (tensor<2xui64>, {result}) {{
      %n, %r = stablehlo.rng_bit_generator %s, algorithm = {algorithm} : (tensor<2xui64>) -> (tensor<2xui64>, {result})
      return %n, %r : tensor<2xui64>, {result}
    }}"""
    return execute(function_named(parse_module(text, "f.mlir")), [np.array([7, (1 << 64) - 2], np.uint64)])


def test_counter_of_128_bits_carries() -> None:
    text = """func.func @main(%s: tensor<3xui64>) -> (tensor<3xui64>, tensor<9xui32>) {
      %n, %r = "stablehlo.rng_bit_generator"(%s) {rng_algorithm = #stablehlo<rng_algorithm PHILOX>}
        : (tensor<3xui64>) -> (tensor<3xui64>, tensor<9xui32>)
      return %n, %r : tensor<3xui64>, tensor<9xui32>
    }"""
    state = np.array([5, (1 << 64) - 2, 9], np.uint64)
    new, bits = execute(function_named(parse_module(text, "f.mlir")), [state])
    assert new.tolist() == [5, 1, 10]
    after, _ = philox(np.array([5, 0, 10], np.uint64), (1,), False)
    assert bits[8] == after[0]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (64, 3), (2, 33)])
def test_sort_equals_jax(shape: tuple[int, ...], axis: int) -> None:
    x = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    x[0, 0] = np.nan
    check(lambda x: jnp.sort(x, axis=axis), x)
    check(lambda x: jnp.sort(x, axis=axis, descending=True), x)
    check(lambda x: jnp.argsort(x, axis=axis, stable=True), x)
    check(lambda x: lax.sort((x, -x, x + 1), dimension=axis, num_keys=2), x)


def test_sort_of_an_empty_array_is_empty() -> None:
    check(lambda x: jnp.sort(x, axis=0), np.empty((0, 3), np.float32))


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize(("window", "stride"), [((2, 2), (2, 2)), ((3, 2), (1, 2)), ((3, 3), (2, 1))])
def test_select_and_scatter_equals_the_gradient_of_max_pooling(
    padding: str, window: tuple[int, int], stride: tuple[int, int]
) -> None:
    """The gradient of max pooling with ties equals JAX's; whole numbers make its sums exact."""
    x = np.random.default_rng(0).integers(0, 6, (2, 7, 8)).astype(np.float32)

    def loss(x: Any) -> Any:
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, *window), (1, *stride), padding)
        weights = jnp.arange(pooled.size, dtype=jnp.float32).reshape(pooled.shape)
        return jnp.sum(pooled * weights)

    text = jax.jit(jax.grad(loss)).lower(x).as_text()
    assert "select_and_scatter" in text
    check(jax.grad(loss), x)
