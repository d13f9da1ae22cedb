"""Reasons for which segments are not recomputed keep their type in plan files."""

from __future__ import annotations

from recompute.planning.skip_reason import SkipReason, frees_nothing


def test_text_of_a_reason_is_read_as_the_reason() -> None:
    assert all(SkipReason.parse(str(reason)) is reason for reason in SkipReason)
    assert SkipReason.parse("another reason") == "another reason"


def test_only_reasons_of_this_type_say_that_copies_free_nothing() -> None:
    assert frees_nothing(SkipReason.NO_GATE)
    assert not any(map(frees_nothing, (SkipReason.SKIPPED, SkipReason.NO_GATE.value, None)))
