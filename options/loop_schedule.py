"""The option `loops`: `true`, `false`, or a schedule that bounds what loops save for the backward pass.

- `keep(50%)`, `keep(2GiB)`: save at most this much of the stacks, the values that cost the most to recompute first.
- `periodic(8)`, `periodic(auto)`: save the carries every 8 iterations; one chunk of iterations at a time runs again.
- `binomial(4)`, `binomial(1GiB)`: save carries in 4 slots, or as many as fit, refilled while the later loop runs.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from ..support.units import parse_budget, parse_bytes
from .selection import BadSelection

Loops = bool | str
"""The option as the user gives it."""


@dataclass(frozen=True)
class LoopSchedule:
    """The parsed option.

    Attributes:
        kind: Loops are unchanged (`none`), save the smallest set of stacks (`cut`), or save carries at intervals
            (`periodic`) or in slots (`binomial`).
        every: The interval in iterations; None for the one with the fewest bytes.
        slots: The number of slots; None for as many as fit into `bytes`.
        bytes: The bytes for slots.
        keep: The most bytes of stacks, or a share of them, that `cut` saves; empty for the smallest set.
    """

    kind: Literal["none", "cut", "periodic", "binomial"]
    every: int | None = None
    slots: int | None = None
    bytes: int | None = None
    keep: str = ""

    @property
    def is_proved(self) -> bool:
        """Whether the proof has rules for it."""
        return self.kind != "binomial"


class BadSchedule(BadSelection):
    """The option is no schedule."""

    def __init__(self, loops: str):
        super().__init__(f"loops is {POSSIBLE}, not {loops!r}")


POSSIBLE = (
    "true, false, keep(50%) or keep(2GiB), periodic(8), with 8 or any number from 1 on, periodic(auto), binomial(4) or "
    "binomial(1GiB)"
)
NOT_PROVED = "loops={loops} is not proved by any rule: ask for no proof (--no-proof, proof=False), or for periodic(…)"
_NUMBER = r"0*[1-9][0-9]*"


def schedule_of(loops: Loops) -> LoopSchedule:
    """Parse the option `loops`. Raises `BadSchedule`, which lists the accepted forms."""
    text = str(loops).lower() if isinstance(loops, bool) else loops.strip()
    if text in ("true", "false"):
        return LoopSchedule("cut" if text == "true" else "none")
    if match := re.fullmatch(rf"periodic\s*\(\s*(auto|{_NUMBER})\s*\)", text):
        return LoopSchedule("periodic", every=None if match[1] == "auto" else int(match[1]))
    if match := re.fullmatch(rf"binomial\s*\(\s*({_NUMBER})\s*\)", text):
        return LoopSchedule("binomial", slots=int(match[1]))
    if match := re.fullmatch(r"binomial\s*\(([^()]*[A-Za-z][^()]*)\)", text):
        with suppress(ValueError):
            return LoopSchedule("binomial", bytes=parse_bytes(match[1]))
    if (match := re.fullmatch(r"keep\s*\(([^()]*)\)", text)) and _is_amount(match[1].strip()):
        return LoopSchedule("cut", keep=match[1].strip())
    raise BadSchedule(text)


def _is_amount(text: str) -> bool:
    try:
        return parse_budget(text, 1) is not None
    except ValueError:
        return False


def demand_proof(loops: Loops) -> None:
    """Raise `BadSelection` if no rule of the proof covers the loop schedule."""
    if not schedule_of(loops).is_proved:
        raise BadSelection(NOT_PROVED.format(loops=loops))
