"""Names of segments by structure."""

from __future__ import annotations

import pytest

from recompute.planning.by_segment.numbered_segments import is_numbered, number_of_segment, numbered_segment


@pytest.mark.parametrize("number", [0, 7, 12])
def test_number_of_a_numbered_segment(number: int) -> None:
    assert number_of_segment(numbered_segment(number)) == number


@pytest.mark.parametrize("name", ["segment", "segment#1", "model/segment1", "segment1#2", "block1", ""])
def test_other_names_have_no_number(name: str) -> None:
    assert number_of_segment(name) is None and not is_numbered(name)
