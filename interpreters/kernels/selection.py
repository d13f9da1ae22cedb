"""`stablehlo.select_and_scatter`, the gradient of pooling."""

from __future__ import annotations

from math import prod

import numpy as np

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.windows import SelectAndScatterOp, windows
from .arrays import Array, Combine, Kernel, dtype_at, row_by_row
from .indexing import turns
from .windowed import windows_over


def select_and_scatter(op: SelectAndScatterOp, select: Combine, scatter: Combine) -> Kernel:
    """Of several candidates the first is selected; values for one element are combined in the order of windows."""
    shape, dtype = shape_of(op.operand), dtype_at(op.result)
    sizes = op.window_dimensions.get_values() if op.window_dimensions is not None else (1,) * len(shape)
    places = windows_over(
        np.arange(prod(shape)).reshape(shape), np.array(-1), windows(sizes, op.window_strides, op.padding)
    ).reshape(-1, prod(sizes))

    def run(operand: Array, source: Array, init: Array, *captured: Array) -> tuple[Array, ...]:
        chosen = _chosen(row_by_row(operand).reshape(-1), captured)
        result = np.full(prod(shape), init, dtype)
        values = row_by_row(source).reshape(-1)
        for turn in turns(chosen, chosen >= 0):
            at = chosen[turn]
            (combined,) = scatter(result[at], values[turn], *captured)
            result[at] = combined.astype(dtype, copy=False)
        return (result.reshape(shape),)

    def _chosen(values: Array, captured: tuple[Array, ...]) -> Array:
        """The position of the selected element of each window; -1 for a window outside of the operand."""
        best = np.full(len(places), -1)
        for candidate in places.T:
            (stays,) = select(values[best], values[candidate], *captured)
            best = np.where((candidate >= 0) & ((best < 0) | ~stays), candidate, best)
        return best

    return run
