"""Names of segments by structure: the search cuts and numbers them itself, in program order, as `segment0`, `segment1`.

The segments between checkpoints are numbered too. All other segments have the path of a scope, or a name of the user.
"""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"segment(\d+)")


def numbered_segment(number: int) -> str:
    """Return the name of the segment by structure with this number."""
    return f"segment{number}"


def number_of_segment(name: str) -> int | None:
    """Return the number of a segment by structure; None for the name of any other segment."""
    match = _NUMBERED.fullmatch(name)
    return None if match is None else int(match[1])


def is_numbered(name: str) -> bool:
    """Return whether a name is that of a segment by structure, which tells nothing about the model."""
    return number_of_segment(name) is not None
