"""The provenance of copies: the start of a search, and the steps that improved its plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ...support.counted import counted


class Improvement(Enum):
    """A step that improves a plan."""

    RUIN_AND_RECREATE = "ruin and recreate"
    BLOCK_TRANSFER = "alike in all blocks"
    WINDOWS = "windows"


@dataclass(frozen=True)
class Provenance:
    """The solver and the improvements that found the copies of a plan.

    Attributes:
        start: The name of the solver or of the start.
        improvements: The steps that improved its plan, in order. A repeated step is listed once, at its last place.
        copied_views: The number of views that the problem offers as copies.
    """

    start: str
    improvements: tuple[Improvement, ...] = ()
    copied_views: int = 0

    def then(self, improvement: Improvement) -> Provenance:
        """Return the provenance after one more improvement."""
        earlier = [step for step in self.improvements if step is not improvement]
        return replace(self, improvements=(*earlier, improvement))

    def __str__(self) -> str:
        steps = " + ".join([self.start, *(step.value for step in self.improvements)])
        return f"{steps}, {counted(self.copied_views, 'copy', 'copies')} of views" if self.copied_views else steps
