"""Names of numbered segments: `segment0`, `segment1`, … in program order.

Segments that the search cuts itself, and segments between checkpoints, have numbers. All other segments are named by
the path of a scope, or by the user.
"""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"segment(\d+)")


def numbered_segment(number: int) -> str:
    """Return the name of the numbered segment with this number."""
    return f"segment{number}"


def number_of_segment(name: str) -> int | None:
    """Return the number in the name of a numbered segment; None for any other name."""
    match = _NUMBERED.fullmatch(name)
    return None if match is None else int(match[1])


def is_numbered(name: str) -> bool:
    """Return whether this is the name of a numbered segment. Such a name carries no information about the model."""
    return number_of_segment(name) is not None
