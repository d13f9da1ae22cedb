"""Operations that move elements: padding, reversal, and slices at run-time indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.dynamic import DynamicSliceOp, DynamicUpdateSliceOp
from ...dialects.stablehlo.padding import PadOp, ReverseOp
from .arrays import Array, Kernel, on_one, on_two


def reverse(op: ReverseOp) -> Kernel:
    dimensions = op.dimensions.get_values()
    return on_one(lambda operand: np.flip(operand, dimensions).copy())


def pad(op: PadOp) -> Kernel:
    amounts = (op.edge_padding_low, op.edge_padding_high, op.interior_padding)
    low, high, interior = (amount.get_values() for amount in amounts)
    return on_two(lambda operand, value: padded(operand, value, low, high, interior))


def padded(operand: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """A new array with `value` before, behind and between the elements of each dimension."""
    amounts = list(zip(operand.shape, low, high, interior, strict=True))
    sums = [below + extent + max(extent - 1, 0) * between + above for extent, below, above, between in amounts]
    shape = [max(extent, 0) for extent in sums]
    ranges = [
        _places(extent, new, below, between) for (extent, below, _, between), new in zip(amounts, shape, strict=True)
    ]
    source, target = (tuple(pair[side] for pair in ranges) for side in (0, 1))
    result = np.empty(shape, operand.dtype)
    result[...] = value
    result[(*target, ...)] = operand[(*source, ...)]
    return result


def _places(before: int, after: int, low: int, interior: int) -> tuple[slice, slice]:
    """The elements along a dimension that stay, and their new positions; negative padding removes elements."""
    step = interior + 1
    first = max(0, -(low // step))
    count = max(0, min(before, -((low - after) // step)) - first)
    start = low + first * step
    return slice(first, first + count), slice(start, start + count * step, step) if count else slice(0, 0)


def dynamic_slice(op: DynamicSliceOp) -> Kernel:
    shape, sizes = shape_of(op.operand), op.slice_sizes.get_values()

    def run(operand: Array, *starts: Array) -> tuple[Array, ...]:
        return (operand[_window(starts, sizes, shape)].copy(),)

    return run


def dynamic_update_slice(op: DynamicUpdateSliceOp) -> Kernel:
    shape, sizes = shape_of(op.operand), shape_of(op.update)

    def run(operand: Array, update: Array, *starts: Array) -> tuple[Array, ...]:
        result = operand.copy()
        result[_window(starts, sizes, shape)] = update
        return (result,)

    return run


def _window(starts: Sequence[Array], sizes: Sequence[int], shape: Sequence[int]) -> tuple[Any, ...]:
    """The slice, clamped so that it is in bounds."""
    kept = [min(max(int(start), 0), extent - size) for start, size, extent in zip(starts, sizes, shape, strict=True)]
    return (*(slice(start, start + size) for start, size in zip(kept, sizes, strict=True)), ...)
