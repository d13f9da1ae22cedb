"""Find the peak in a list of live bytes, which contains one number for each operation in program order."""

from __future__ import annotations

from collections.abc import Sequence


def largest(live_bytes: Sequence[int]) -> int:
    """Return the peak, or 0 if there are no operations."""
    return max(live_bytes, default=0)


def index_of_largest(live_bytes: Sequence[int]) -> int:
    """Return the index of the first operation at which the peak is reached, or 0 if there are no operations."""
    return live_bytes.index(largest(live_bytes)) if live_bytes else 0
