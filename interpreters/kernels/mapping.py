"""`stablehlo.map`: a region on scalars, for each place of tensors of one shape."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from .arrays import Array, Combine, Kernel, dtype_at, owned, row_by_row, shape_at


def map_(op: Operation, combine: Combine) -> Kernel:
    """`ValueError` where the region does not fit: xDSL does not know the operation, and verifies nothing."""
    count, shape, dtypes = len(op.operands), shape_at(op.results[0]), [dtype_at(result) for result in op.results]
    given = [dtype_at(argument) for argument in op.regions[0].block.args]
    if given != [dtype_at(operand) for operand in op.operands] or any(shape_at(one) != shape for one in op.operands):
        raise ValueError("its region does not take one element of each operand, or the shapes differ")

    def run(*operands: Array) -> tuple[Array, ...]:
        vectors = [row_by_row(one).reshape(-1) for one in operands[:count]]
        found = combine(*vectors, *operands[count:])
        return tuple(owned(np.reshape(one, shape), dtype) for one, dtype in zip(found, dtypes, strict=True))

    return run
