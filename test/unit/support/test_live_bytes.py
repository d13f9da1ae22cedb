"""The peak of live bytes and its first position."""

from __future__ import annotations

from recompute.support.live_bytes import index_of_largest, largest


def test_first_of_several_peaks_counts() -> None:
    assert (largest((1, 3, 2, 3)), index_of_largest((1, 3, 2, 3))) == (3, 1)


def test_function_without_operations_has_no_peak() -> None:
    assert (largest(()), index_of_largest(())) == (0, 0)
