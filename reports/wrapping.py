"""Wrap the lines of reports without cutting text off."""

from __future__ import annotations

from textwrap import wrap

SUMMARY_COLUMNS = 100
"""The width of summaries."""
_MOST_INDENT = 48


def wrap_line(line: str, indent: int = 2) -> list[str]:
    """Split the line into parts of at most `SUMMARY_COLUMNS` columns, unless a single word is longer.

    `indent`: the number of columns before each part except for the first. At most half of the width is used, so that
    the parts stay readable.
    """
    if len(line) <= SUMMARY_COLUMNS:
        return [line]
    return wrap(
        line,
        SUMMARY_COLUMNS,
        subsequent_indent=" " * min(indent, _MOST_INDENT),
        break_long_words=False,
        break_on_hyphens=False,
    )
