"""The kernel of `chlo.ragged_dot` with ragged rows or contracted elements, against JAX's `ragged_dot_general` and
numpy."""

from __future__ import annotations

from typing import Any, cast

import jax
import numpy as np
import pytest
from jax import lax
from numpy.typing import NDArray
from xdsl.utils.exceptions import VerifyException

from recompute.interpreters.executor import execute, function_named
from recompute.mlir_io.parser import parse_module
from recompute.rules.flops import flops

Dimensions = tuple[list[int], list[int], list[int], list[int], list[int], list[int]]
RANDOM = np.random.default_rng(0)
LHS, RHS = RANDOM.normal(size=(2, 11, 5)).astype(np.float32), RANDOM.normal(size=(3, 2, 5, 7)).astype(np.float32)
SMALL = RANDOM.normal(size=(2, 5, 7)).astype(np.float32)
ROWS: Dimensions = [0], [1], [2], [2], [1], [0]
CONTRACTED: Dimensions = [0], [0], [2], [1], [2], []
WITHOUT_GROUPS: Dimensions = *ROWS[:5], []
BATCHES: Dimensions = [0], [0], [2], [1], [0], []
Refused = tuple[NDArray[np.float32], str, str, Dimensions, str]
NAMES = "lhs_batching rhs_batching lhs_contracting rhs_contracting lhs_ragged rhs_group".split()


def type_of(value: NDArray[np.generic]) -> str:
    return f"tensor<{'x'.join(map(str, value.shape))}x{'f32' if value.dtype == np.float32 else 'i32'}>"


def text(lhs: object, rhs: object, sizes: object, result: str, dimensions: Dimensions) -> str:
    fields = ", ".join(f"{name}_dimensions = {value}" for name, value in zip(NAMES, dimensions, strict=True))
    types = [value if isinstance(value, str) else type_of(value) for value in (lhs, rhs, sizes)]  # pyright: ignore
    return f"""
    func.func @main(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}) -> {result} {{
      %r = "chlo.ragged_dot"(%a, %b, %c) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{fields}>,
        precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]}}> : ({", ".join(types)}) -> {result}
      return %r : {result}
    }}
    """


@pytest.mark.parametrize(
    ("rhs", "sizes", "dimensions"),
    [
        (RHS, [4, 0, 7], ROWS),
        (RHS, [4, 3, 2], ROWS),
        (RHS, [[4, 0, 7], [1, 5, 2]], ROWS),
        (SMALL, [2, 0, 3], CONTRACTED),
        (SMALL, [[2, 0, 3], [1, 1, 1]], CONTRACTED),
    ],
)
def test_ragged_dot_equals_jax(rhs: NDArray[np.float32], sizes: list[int], dimensions: Dimensions) -> None:
    group_sizes = np.array(sizes, np.int32)
    numbers = lax.RaggedDotDimensionNumbers(
        dot_dimension_numbers=((dimensions[2], dimensions[3]), (dimensions[0], dimensions[1])),
        lhs_ragged_dimensions=dimensions[4],
        rhs_group_dimensions=dimensions[5],
    )
    with jax.default_matmul_precision("highest"):
        product = cast(Any, lax.ragged_dot_general)(LHS, rhs, group_sizes, numbers)
    expected: NDArray[np.float32] = np.asarray(product)
    program = text(LHS, rhs, group_sizes, type_of(expected), dimensions)
    (result,) = execute(function_named(parse_module(program)), [LHS, rhs, group_sizes])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5, strict=True)


def test_ragged_batches_give_the_plain_product() -> None:
    sizes = np.array([1, 1], np.int32)
    program = text(LHS, SMALL, sizes, "tensor<2x11x7xf32>", BATCHES)
    (result,) = execute(function_named(parse_module(program)), [LHS, SMALL, sizes])
    np.testing.assert_allclose(result, LHS @ SMALL, rtol=1e-5, atol=1e-6, strict=True)


def test_printed_text_round_trips() -> None:
    module = parse_module(text(LHS, RHS, "tensor<3xi32>", "tensor<2x11x7xf32>", ROWS))
    assert "rhs_group_dimensions = [0]>" in str(module)
    assert str(parse_module(str(module))) == str(module)


@pytest.mark.parametrize(
    ("rhs", "result", "dimensions"), [(RHS, "tensor<2x11x7xf32>", ROWS), (SMALL, "tensor<3x2x11x7xf32>", CONTRACTED)]
)
def test_ragged_dot_costs_one_product(rhs: NDArray[np.float32], result: str, dimensions: Dimensions) -> None:
    (op,) = (
        op
        for op in parse_module(text(LHS, rhs, "tensor<3xi32>", result, dimensions)).walk()
        if op.name == "chlo.ragged_dot"
    )
    assert flops(op) == 2 * 2 * 11 * 5 * 7


REFUSED: list[Refused] = [
    (RHS, "tensor<3xf32>", "tensor<2x11x7xf32>", ROWS, "expected integers"),
    (RHS, "tensor<4xi32>", "tensor<2x11x7xf32>", ROWS, "the group dimension of rhs has shape"),
    (RHS, "tensor<5x3xi32>", "tensor<2x11x7xf32>", ROWS, "group_sizes has shape"),
    (RHS, "tensor<3xi32>", "tensor<2x11x8xf32>", ROWS, "the result has shape"),
    (RHS, "tensor<3xi32>", "tensor<2x11x7xf32>", (*ROWS[:4], [1, 2], [0]), "2 lhs_ragged_dimensions, expected 1"),
    (RHS, "tensor<3xi32>", "tensor<2x11x7xf32>", (*ROWS[:4], [3], [0]), "must be non-negative and less than rank 3"),
    (RHS, "tensor<3xi32>", "tensor<2x11x7xf32>", WITHOUT_GROUPS, "0 rhs_group_dimensions, expected 1"),
    (RHS, "tensor<3xi32>", "tensor<2x11x7xf32>", (*ROWS[:5], [1]), "must be distinct"),
    (
        RHS,
        "tensor<3xi32>",
        "tensor<2x11x7xf32>",
        ([0], [1], [2], [3], [1], [0]),
        "batching and contracting part of rhs",
    ),
]


@pytest.mark.parametrize(("rhs", "sizes", "result", "dimensions", "words"), REFUSED)
def test_invalid_ragged_dots_are_refused(
    rhs: NDArray[np.float32], sizes: str, result: str, dimensions: Dimensions, words: str
) -> None:
    with pytest.raises(VerifyException, match=words):
        parse_module(text(LHS, rhs, sizes, result, dimensions)).verify()
