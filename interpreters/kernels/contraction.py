"""`stablehlo.dot_general` as batched products of matrices."""

from __future__ import annotations

from math import prod

import numpy as np

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.contraction import DotGeneralOp
from .arrays import Array, Kernel, dtype_at, owned, row_by_row, wide
from .conversion import convert


def dot_general(op: DotGeneralOp) -> Kernel:
    """Products and sums in the element type of the result, in f32 for smaller floats.

    A lower precision or an algorithm that the operation allows is not made use of.
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
        return (owned(result, dtype),)

    def _matrices(values: Array, order: tuple[int, ...], extents: tuple[int, ...]) -> Array:
        converted = values if values.dtype == working else convert(values, working)
        return row_by_row(converted.transpose(order)).reshape(extents)

    return run
