"""Messages on marks and on parts of the options that have no effect: `train.py:15:53: <reason and remedy>`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....support.diagnostics import place_of
from ....support.locations import base_name
from ....support.remarks import Remark, lines_of, without_effect

_MAX = 3
"""The maximum number of reasons in a message. Further reasons are only counted."""


def no_effect_lines(remarks: Iterable[Remark | str]) -> list[str]:
    """Return a line for each reason why marks or parts of the options have no effect.

    After `_MAX` lines, a last line gives the number of further reasons.
    """
    short = [
        replace(remark, place=base_name(remark.place or place_of(remark.operation)))
        for remark in without_effect(remarks)
    ]
    lines = [line.replace(": remark: ", ": ", 1) for line in lines_of(short)]
    others = [f"{len(lines) - _MAX} more, which report(...).details() lists"] if len(lines) > _MAX else []
    return [*lines[:_MAX], *others]


def no_effect_warning(name: str, remarks: Iterable[Remark | str]) -> str | None:
    """Return the text of the warning `MarkWithoutEffect` for a step; None if every mark and option has an effect."""
    lines = no_effect_lines(remarks)
    return f"{name}: {'; '.join(lines)}" if lines else None
