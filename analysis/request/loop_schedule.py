"""What is asked of loops: `true`, `false`, and what is kept of a carry that is too much in each iteration:
`periodic(8)` or `periodic(auto)`, the carries every so many iterations, and one chunk of these at a time is run again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .selection import BadSelection

Loops = bool | str
"""As it is asked for."""


@dataclass(frozen=True)
class Schedule:
    """`cut`: what loops hand on to later ones is cut. `periodic`: and what is left is kept by chunks, of `every`
    iterations; None: of as many as hold the fewest bytes."""

    cut: bool
    periodic: bool = False
    every: int | None = None


class BadSchedule(BadSelection):
    """What was asked of loops is no schedule."""

    def __init__(self, loops: str):
        super().__init__(
            f"loops is true, false, periodic(8), with 8 or any number from 1 on, or periodic(auto): {loops!r}"
        )


def schedule_of(loops: Loops) -> Schedule:
    """What is asked for, read. Raises `BadSchedule`, which says what is possible."""
    if isinstance(loops, bool):
        return Schedule(loops)
    text = loops.strip()
    if text in ("true", "false"):
        return Schedule(text == "true")
    match = re.fullmatch(r"periodic\s*\(\s*(auto|0*[1-9][0-9]*)\s*\)", text)
    if match is None:
        raise BadSchedule(loops)
    return Schedule(True, True, None if match[1] == "auto" else int(match[1]))
