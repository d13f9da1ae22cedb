"""A stable merge sort that sorts many lines at once, with a comparison that takes arrays of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from .arrays import Array

Precedes: TypeAlias = Callable[[Array, Array], Array]
"""A comparison of two arrays of elements. Elements are integer ids. For each element of the first array, it returns
whether the element must precede the corresponding element of the second array."""


def merge_sort(lines: Array, precedes: Precedes) -> Array:
    """Return the lines, each with its elements sorted by a bottom-up merge sort.

    Sorted runs of 1, 2, 4, … elements are merged in pairs. The position of an element in the merged run is its position
    in its own run plus the number of elements of the other run that precede it.

    Args:
        lines: The elements, with one line in each row.
        precedes: The comparison. If neither of two elements precedes the other, they stay in order.
    """
    length = lines.shape[1]
    columns = np.arange(length, dtype=np.int64)
    run_length = 1
    while run_length < length:
        start = columns - columns % (2 * run_length)
        middle, end = np.minimum(start + run_length, length), np.minimum(start + 2 * run_length, length)
        is_left = columns < middle
        other_start, other_end = np.where(is_left, middle, start), np.where(is_left, end, middle)
        place_in_run = np.where(is_left, columns, columns - (middle - start))
        merged = lines.copy()
        targets = place_in_run + _preceding_in_other_run(lines, other_start, other_end, is_left, precedes)
        np.put_along_axis(merged, targets, lines, axis=1)
        lines = merged
        run_length *= 2
    return lines


def _preceding_in_other_run(
    lines: Array, other_start: Array, other_end: Array, is_left: Array, precedes: Precedes
) -> Array:
    """Return, for each element, the number of elements of the other run that precede it, by binary search.

    If two elements are equal, the element of the left run comes first.

    Args:
        lines: The elements.
        other_start, other_end: For each column, the first column of the other run, and the column after its last
            column.
        is_left: For each column, whether it belongs to the left run of its pair.
        precedes: The comparison.
    """
    low = np.broadcast_to(other_start, lines.shape).copy()
    high = np.broadcast_to(other_end, lines.shape).copy()
    while np.any(is_open := low < high):
        # After the search for an element has ended, the middle may be out of bounds. It is clamped, and the result of
        # the comparison is not used.
        middle = np.minimum((low + high) // 2, lines.shape[1] - 1)
        candidates = np.take_along_axis(lines, middle, axis=1)
        is_before = np.where(is_left, precedes(candidates, lines), ~precedes(lines, candidates))
        low = np.where(is_open & is_before, middle + 1, low)
        high = np.where(is_open & ~is_before, middle, high)
    return low - other_start
