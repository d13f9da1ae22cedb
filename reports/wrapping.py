"""Wrap the lines of reports for people: nothing is cut off."""

from __future__ import annotations

from textwrap import wrap

SUMMARY_COLUMNS = 100
"""The width of summaries."""
_MOST_INDENT = 48


def wrap_line(line: str, indent: int = 2) -> list[str]:
    """Return the line in parts of at most `SUMMARY_COLUMNS` columns, unless a single word is longer.

    `indent`: the columns before each part but the first; at most half of the width, so that the parts stay readable.
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
