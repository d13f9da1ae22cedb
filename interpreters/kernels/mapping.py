"""`stablehlo.map`: a region on scalars, for each place of tensors of one shape."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from .arrays import Array, Combine, Kernel, dtype_at, owned, row_by_row, shape_at


def map_(op: Operation, combine: Combine) -> Kernel:
    count, shape, dtypes = len(op.operands), shape_at(op.results[0]), [dtype_at(result) for result in op.results]

    def run(*operands: Array) -> tuple[Array, ...]:
        vectors = [row_by_row(one).reshape(-1) for one in operands[:count]]
        found = combine(*vectors, *operands[count:])
        return tuple(owned(np.reshape(one, shape), dtype) for one, dtype in zip(found, dtypes, strict=True))

    return run
