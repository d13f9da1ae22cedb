"""Collect the functions to which a selection does not apply: no such segment, no such checkpoint.

A nested step is outlined as its own function; a selection that names only its segments is no misfit for the outer one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects.func import FuncOp

from ...options.selection import BadSelection
from ...support.diagnostics import BadRequest
from ...support.operations import every_operation
from ..per_device.outline import is_stand_in

T = TypeVar("T")


@dataclass
class Misfits:
    """The functions to which a selection does not apply, with the error (`misfits`), and the number of functions to
    which it applies (`fits`)."""

    misfits: list[tuple[FuncOp, BadSelection]] = field(default_factory=list[tuple[FuncOp, BadSelection]])
    fits: int = 0

    def fitted(self, function: FuncOp, work: Callable[[], T]) -> T | None:
        """Return the result of `work`, or None after recording a `BadSelection` that it raises."""
        try:
            result = work()
        except BadSelection as error:
            self.misfits.append((function, error))
            return None
        self.fits += 1
        return result

    def refuse(self) -> None:
        """Raise `Refusal` for the first misfit; one that holds a stand-in is excused if another function fits."""
        for function, error in self.misfits:
            if not (self.fits and any(map(is_stand_in, every_operation(function)))):
                raise BadRequest(function, str(error)) from error
