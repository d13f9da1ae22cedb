"""The option `loops`: `true`, `false`, or a schedule that limits the values that loops save for the backward pass.

- `keep(50%)`, `keep(2GiB)`: save at most this share or size of the stacks, beginning with the values that cost the most
    to recompute.
- `periodic(8)`, `periodic(auto)`: save the carries every 8 iterations, or at the interval that needs the fewest bytes,
    and rerun one chunk of iterations at a time.
- `binomial(4)`, `binomial(1GiB)`: save carries in 4 slots, or in as many slots as fit in 1 GiB. The slots are refilled
    while the later loop runs.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from ..support.interface import interface_wording
from ..support.units import amount_bytes, parse_amount, parse_bytes
from .selection import BadSelection

Loops = bool | str
"""The option in the form in which users write it."""


@dataclass(frozen=True)
class LoopSchedule:
    """The parsed option `loops`.

    Attributes:
        kind: The values that loops save: all stacks, because the loops stay unchanged (`none`); a set of stacks
            (`cut`); carries at intervals (`periodic`); or carries in slots (`binomial`).
        every: The interval of `periodic` in iterations; None for the interval that saves the fewest bytes.
        slots: The number of slots of `binomial`; None for the largest number that fits in `bytes`.
        bytes: The memory for the slots of `binomial`, in bytes.
        keep: The maximum size of the stacks that `cut` saves, in bytes (`int`) or as a share of all stacks (`float`);
            None for the smallest set of stacks.
    """

    kind: Literal["none", "cut", "periodic", "binomial"]
    every: int | None = None
    slots: int | None = None
    bytes: int | None = None
    keep: int | float | None = None

    @property
    def is_proved(self) -> bool:
        """Whether the proof has rules for loops with this schedule."""
        return self.kind != "binomial"

    def kept_limit(self, all_stacks: int) -> int | None:
        """Return the limit of `cut` in bytes, or None for the smallest set of stacks.

        `all_stacks`: the bytes of all stacks, to which a share refers.
        """
        return None if self.keep is None else amount_bytes(self.keep, all_stacks)

    @property
    def option(self) -> Loops:
        """The schedule in the syntax of the option `loops`."""
        if self.kind == "none":
            return False
        if self.kind == "cut":
            return True if self.keep is None else f"keep({_amount_text(self.keep)})"
        if self.kind == "periodic":
            return f"periodic({self.every or 'auto'})"
        return f"binomial({self.slots if self.bytes is None else f'{self.bytes}B'})"

    @property
    def pass_option(self) -> str:
        """The schedule in the syntax of pass options: `loops=true`, `loops="periodic(8)"`."""
        option = self.option
        return f"loops={str(option).lower()}" if isinstance(option, bool) else f'loops="{option}"'


UNCUT = LoopSchedule("none")
"""Loops stay unchanged."""
SMALLEST_STACKS = LoopSchedule("cut")
"""Loops save the smallest sufficient set of stacks."""


class BadSchedule(BadSelection):
    """Raised for an invalid value of the option `loops`."""

    def __init__(self, loops: str):
        super().__init__(f"loops must be {ACCEPTED_FORMS}, not {loops!r}")


ACCEPTED_FORMS = (
    "true, false, keep(50%), keep(2GiB), periodic(8) with any number from 1 on, periodic(auto), binomial(4) or "
    "binomial(1GiB)"
)
NO_PROOF_RULE = (
    "loops={kind}(…) cannot be proved, because no rule covers it: disable the proof ({remedy}), or use periodic(…)"
)
_NUMBER = r"0*[1-9][0-9]*"


def schedule_of(loops: Loops | LoopSchedule) -> LoopSchedule:
    """Parse the option `loops`; a schedule is returned unchanged.

    Raises:
        BadSchedule: For an invalid option, with the list of accepted forms.
    """
    if isinstance(loops, LoopSchedule):
        return loops
    text = str(loops).lower() if isinstance(loops, bool) else loops.strip()
    if text in ("true", "false"):
        return SMALLEST_STACKS if text == "true" else UNCUT
    if match := re.fullmatch(rf"periodic\s*\(\s*(auto|{_NUMBER})\s*\)", text):
        return LoopSchedule("periodic", every=None if match[1] == "auto" else int(match[1]))
    if match := re.fullmatch(rf"binomial\s*\(\s*({_NUMBER})\s*\)", text):
        return LoopSchedule("binomial", slots=int(match[1]))
    if match := re.fullmatch(r"binomial\s*\(([^()]*[A-Za-z][^()]*)\)", text):
        with suppress(ValueError):
            return LoopSchedule("binomial", bytes=parse_bytes(match[1]))
    if match := re.fullmatch(r"keep\s*\(([^()]*)\)", text):
        with suppress(ValueError):
            return LoopSchedule("cut", keep=parse_amount(match[1]))
    raise BadSchedule(text)


def _amount_text(amount: int | float) -> str:
    return f"{100 * amount:.15g}%" if isinstance(amount, float) else f"{amount}B"


def demand_proof(schedule: LoopSchedule) -> None:
    """Check that the proof has rules for the loop schedule. Raises `BadSelection`."""
    if not schedule.is_proved:
        remedy = interface_wording("--no-proof", "proof=False")
        raise BadSelection(NO_PROOF_RULE.format(kind=schedule.kind, remedy=remedy))
