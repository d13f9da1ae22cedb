"""Functions that a selection does not fit: no such segment, no such checkpoint.

Where the inside of a function is worked on as a function of its own, the selection may speak of the inside alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects.func import FuncOp

from ...options.selection import BadSelection
from ...support.diagnostics import Refusal
from ...support.walk import every_operation
from ..per_device.bodies import is_stand_in

T = TypeVar("T")


@dataclass
class Misfits:
    """`found`: with what is wrong. `fits`: how many functions there are that it fits."""

    found: list[tuple[FuncOp, BadSelection]] = field(default_factory=list[tuple[FuncOp, BadSelection]])
    fits: int = 0

    def fitted(self, function: FuncOp, work: Callable[[], T]) -> T | None:
        """What comes of it; None where the selection does not fit the function, which is noted."""
        try:
            done = work()
        except BadSelection as error:
            self.found.append((function, error))
            return None
        self.fits += 1
        return done

    def refuse(self) -> None:
        """Raises `Refusal` for the first one, unless it holds the place of what the selection does fit."""
        for function, error in self.found:
            if not (self.fits and any(map(is_stand_in, every_operation(function)))):
                raise Refusal(function, str(error)) from error
