"""Record the functions to which a selection does not apply, because they lack a segment or checkpoint that the
selection names.

A nested or later step is outlined as a separate function. If a selection names only segments of one of these steps, it
is not an error that the remaining steps lack these segments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects.func import FuncOp

from ...options.selection import BadSelection
from ...support.diagnostics import BadRequest
from ...support.operations import every_operation
from ...support.outlined_names import is_outlined
from ..per_device.outline import is_stand_in

T = TypeVar("T")


@dataclass
class Misfits:
    """The functions to which a selection does not apply, each with its error, and the number of functions to which the
    selection applies."""

    misfits: list[tuple[FuncOp, BadSelection]] = field(default_factory=list[tuple[FuncOp, BadSelection]])
    fits: int = 0

    def try_on(self, function: FuncOp, work: Callable[[], T]) -> T | None:
        """Return the result of `work`. If it raises `BadSelection`, record the error and return None."""
        try:
            result = work()
        except BadSelection as error:
            self.misfits.append((function, error))
            return None
        self.fits += 1
        return result

    def refuse(self) -> None:
        """Raise `BadRequest` for the first function to which the selection does not apply.

        If the selection applies to another function, the parts of a function with several steps are exempt: a nested
        or later step that is outlined, and the function that contains its placeholder.
        """
        for function, error in self.misfits:
            is_part = is_outlined(function) or any(map(is_stand_in, every_operation(function)))
            if not (self.fits and is_part):
                raise BadRequest(function, str(error)) from error
