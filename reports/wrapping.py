"""Wrap the lines of reports without truncating them."""

from __future__ import annotations

from textwrap import wrap

SUMMARY_COLUMNS = 100
"""The maximum number of characters in a line of a summary."""
_MAX_INDENT = 48


def wrap_line(line: str, indent: int = 2) -> list[str]:
    """Split the line into parts of at most `SUMMARY_COLUMNS` columns. A longer word stays whole.

    `indent`: the number of columns by which all parts but the first are indented, at most half of the width.
    """
    if len(line) <= SUMMARY_COLUMNS:
        return [line]
    return wrap(
        line,
        SUMMARY_COLUMNS,
        subsequent_indent=" " * min(indent, _MAX_INDENT),
        break_long_words=False,
        break_on_hyphens=False,
    )
