"""Kernels of `dot_general`, FFT, Cholesky factorization and triangular solve."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.contraction import DotGeneralOp
from ...dialects.stablehlo.linear_algebra import CholeskyOp, FftOp
from .arrays import Array, Kernel, as_owned, dtype_at, on_one, on_two, row_by_row, shape_at, wide
from .conversion import convert
from .properties import flag, word


def dot_general(op: DotGeneralOp) -> Kernel:
    """Make the kernel of `stablehlo.dot_general`.

    The kernel computes products and sums in the element type of the result, or in f32 if this type is smaller. It
    ignores the attributes `precision_config` and `algorithm`.
    """
    numbers = op.dot_dimension_numbers.data
    left, right, shape = shape_of(op.lhs), shape_of(op.rhs), shape_of(op.result)
    batch, paired = numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
    other_batch, other_paired = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    rows = [d for d in range(len(left)) if d not in (*batch, *paired)]
    columns = [d for d in range(len(right)) if d not in (*other_batch, *other_paired)]
    batches, inner = prod(left[d] for d in batch), prod(left[d] for d in paired)
    matrices = (batches, prod(left[d] for d in rows), inner), (batches, inner, prod(right[d] for d in columns))
    dtype = dtype_at(op.result)
    working = wide(dtype)

    def run(lhs: Array, rhs: Array) -> tuple[Array, ...]:
        left = _matrices(lhs, (*batch, *rows, *paired), matrices[0])
        right = _matrices(rhs, (*other_batch, *other_paired, *columns), matrices[1])
        result = np.empty(shape, working)
        np.matmul(left, right, out=result.reshape(batches, matrices[0][1], matrices[1][2]))
        return (as_owned(result, dtype),)

    def _matrices(values: Array, order: tuple[int, ...], extents: tuple[int, ...]) -> Array:
        converted = values if values.dtype == working else convert(values, working)
        return row_by_row(converted.transpose(order)).reshape(extents)

    return run


# The functions by the kind of transform. They take the transformed extents: the extents of the real side.
FFTS: dict[str, Callable[..., Any]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


def fft(op: FftOp) -> Kernel:
    """Make the kernel of `stablehlo.fft`, which computes in f64 and rounds once. An inverse transform divides by the
    extents."""
    extents = op.fft_length.get_values()
    shape = shape_at(op.result)
    dtype = dtype_at(op.result)
    transform = FFTS[op.fft_type.data.value]
    axes = tuple(range(-len(extents), 0))
    working = np.complex128 if dtype_at(op.operand).kind == "c" else np.float64

    def run(operand: Array) -> Array:
        if 0 in (*shape, *operand.shape):
            return np.zeros(shape, dtype)
        return as_owned(transform(operand.astype(working), s=extents, axes=axes), dtype)

    return on_one(run)


def cholesky(op: CholeskyOp) -> Kernel:
    """Make the kernel of `stablehlo.cholesky`, which reads only the requested triangle and sets the other triangle to
    zero.

    The result for a matrix that is not positive definite is undefined; the kernel returns NaN, as in JAX.
    """
    dtype, is_lower = dtype_at(op.a), bool(op.lower)

    def run(operand: Array) -> Array:
        converted = convert(operand, wide(dtype))
        matrices = converted if is_lower else _adjoint(converted)
        factors = np.zeros_like(matrices)
        for index in np.ndindex(*converted.shape[:-2]):
            factors[index] = _factor(matrices[index])
        return as_owned(factors if is_lower else _adjoint(factors), dtype)

    return on_one(run)


def _factor(matrix: Array) -> Array:
    """Return the lower triangular factor of a matrix, computed from its lower triangle."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


def _adjoint(matrices: Array) -> Array:
    return np.conjugate(np.swapaxes(matrices, -1, -2))


def triangular_solve(op: Operation) -> Kernel:
    """Make the kernel of `stablehlo.triangular_solve`, which solves `a x = b` or `x a = b` and reads only the requested
    triangle.

    If the diagonal contains a zero, the results are infinite or NaN.
    """
    is_left, is_lower, has_ones = (flag(op, name) for name in ("left_side", "lower", "unit_diagonal"))
    transpose = word(op, "transpose_a")
    dtype = dtype_at(op.results[0])
    _check_system(shape_at(op.operands[0]), shape_at(op.operands[1]), is_left)

    def run(a: Array, b: Array) -> Array:
        factor, sides = convert(a, wide(dtype)), convert(b, wide(dtype))
        below = is_lower
        if transpose != "NO_TRANSPOSE":
            factor = _adjoint(factor) if transpose == "ADJOINT" else np.swapaxes(factor, -1, -2)
            below = not below
        if not is_left:
            factor, sides, below = np.swapaxes(factor, -1, -2), np.swapaxes(sides, -1, -2), not below
        solution = _substitute(factor, sides, below, has_ones)
        return as_owned(solution if is_left else np.swapaxes(solution, -1, -2), dtype)

    return on_two(run)


def _check_system(a: tuple[int, ...], b: tuple[int, ...], is_left: bool) -> None:
    """Raise `ValueError` if the shapes are inconsistent. xDSL has no verifier for the operation."""
    if len(a) < 2 or a[:-2] != b[:-2] or not a[-2] == a[-1] == b[-2 if is_left else -1]:
        raise ValueError(
            f"operand 'a' must consist of square matrices that match 'b', but 'a' has shape {list(a)} and 'b' has "
            f"shape {list(b)}"
        )


def _substitute(a: Array, b: Array, is_lower: bool, has_ones: bool) -> Array:
    """Return the solutions of triangular systems, computed row by row, starting with the row that has a single
    unknown."""
    size, solution = a.shape[-1], b.copy()
    for row in range(size) if is_lower else reversed(range(size)):
        solved = slice(0, row) if is_lower else slice(row + 1, size)
        solution[..., row, :] -= np.matmul(a[..., row : row + 1, solved], solution[..., solved, :])[..., 0, :]
        if not has_ones:
            solution[..., row, :] /= a[..., row : row + 1, row]
    return solution
