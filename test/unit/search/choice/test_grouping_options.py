"""Attempts and the planner of segments name the options for grouping copies alike."""

from __future__ import annotations

from dataclasses import fields

import pytest

from recompute.planning.by_segment.copy_groups import GroupOptions
from recompute.search.choice.attempts import Attempt
from recompute.transforms.clone import ClonePass


def names(options: type) -> set[str]:
    return {field.name for field in fields(options)}


def test_grouping_options_have_one_name() -> None:
    assert {"splits_only_concurrent", "chain"} <= names(Attempt) & names(GroupOptions)
    assert {"copies", "chain"} <= names(ClonePass) & names(GroupOptions)


def test_flags_are_passed_by_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        GroupOptions(2, True)  # pyright: ignore[reportCallIssue]
