"""`stablehlo.sort` with any comparator: a merge sort of all lines at once."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeAlias

import numpy as np

from ...dialects.stablehlo.branches import SortOp
from ...dialects.stablehlo.checks import shape_of
from .arrays import Array, Combine, Kernel, row_by_row

Precedes: TypeAlias = Callable[[Array, Array], Array]
"""For two arrays of positions in the flat lines: whether the first element goes before the second."""


def sort(op: SortOp, combine: Combine) -> Kernel:
    """Sort stably, whether or not the operation requires it."""
    count, shape = len(op.inputs), shape_of(op.inputs[0])
    along = (op.dimension.value.data if op.dimension is not None else -1) % max(len(shape), 1)
    length = shape[along]
    lines = prod(shape) // length if length else 0

    def run(*operands: Array) -> tuple[Array, ...]:
        flat = [row_by_row(np.moveaxis(operand, along, -1)).reshape(-1) for operand in operands[:count]]

        def precedes(left: Array, right: Array) -> Array:
            pairs = [values[places].reshape(-1) for values in flat for places in (left, right)]
            return combine(*pairs, *operands[count:])[0].reshape(left.shape)

        order = merge_sorted(np.arange(lines * length).reshape(lines, length), precedes)
        moved = (*(extent for d, extent in enumerate(shape) if d != along), length)
        return tuple(np.array(np.moveaxis(values[order].reshape(moved), -1, along), order="C") for values in flat)

    return run


def merge_sorted(order: Array, precedes: Precedes) -> Array:
    """Positions of each line in sorted order, by runs that double in length."""
    length = order.shape[1]
    width = 1
    while width < length:
        places = _numbers(length)
        start = places - places % (2 * width)
        middle, end = np.minimum(start + width, length), np.minimum(start + 2 * width, length)
        is_left = places < middle
        ahead = _ahead(order, np.where(is_left, middle, start), np.where(is_left, end, middle), is_left, precedes)
        goes = np.where(is_left, places, places - (middle - start)) + ahead
        merged = order.copy()
        np.put_along_axis(merged, goes, order, axis=1)
        order = merged
        width *= 2
    return order


def _numbers(length: int) -> Array:
    return np.arange(length)


def _ahead(order: Array, low: Array, high: Array, is_left: Array, precedes: Precedes) -> Array:
    """The number of elements of the other run, from `low` to `high`, before each element; of equals the left first."""
    first = np.broadcast_to(low, order.shape)
    below, above = first.copy(), np.broadcast_to(high, order.shape).copy()
    while np.any(below < above):
        open_ = below < above
        middle = np.minimum((below + above) // 2, order.shape[1] - 1)
        there = np.take_along_axis(order, middle, axis=1)
        before = np.where(is_left, precedes(there, order), ~precedes(order, there))
        below = np.where(open_ & before, middle + 1, below)
        above = np.where(open_ & ~before, middle, above)
    return below - first
