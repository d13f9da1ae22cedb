"""`stablehlo.map`: a region on scalars, for each index of tensors of one shape."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from .arrays import Array, Combine, Kernel, dtype_at, owned, row_by_row, shape_at


def map_(op: Operation, combine: Combine) -> Kernel:
    """Raises `ValueError` if the region does not match: xDSL has no verifier for the operation."""
    count, shape, dtypes = len(op.operands), shape_at(op.results[0]), [dtype_at(result) for result in op.results]
    element_types = [dtype_at(argument) for argument in op.regions[0].block.args]
    if element_types != [dtype_at(operand) for operand in op.operands] or any(
        shape_at(operand) != shape for operand in op.operands
    ):
        raise ValueError("its region does not take one element of each operand, or the shapes differ")

    def run(*operands: Array) -> tuple[Array, ...]:
        vectors = [row_by_row(operand).reshape(-1) for operand in operands[:count]]
        results = combine(*vectors, *operands[count:])
        return tuple(owned(np.reshape(values, shape), dtype) for values, dtype in zip(results, dtypes, strict=True))

    return run
