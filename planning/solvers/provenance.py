"""The provenance of copies: the starting solution of a search, and the methods that improved it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ...support.counted import counted


class Improvement(Enum):
    """A method that improves a plan."""

    RUIN_AND_RECREATE = "ruin and recreate"
    BLOCK_TRANSFER = "alike in all blocks"
    WINDOWS = "windows"


@dataclass(frozen=True)
class Provenance:
    """The solver and the improvements that found the copies of a plan.

    Attributes:
        start: The name of the solver or of the starting solution.
        improvements: The methods that improved the plan, in order. A method that is applied repeatedly is listed once,
            at its last application.
        copied_views: The number of views whose copies are operations of the problem.
    """

    start: str
    improvements: tuple[Improvement, ...] = ()
    copied_views: int = 0

    def with_improvement(self, improvement: Improvement) -> Provenance:
        """Return the provenance of the plan after one more improvement."""
        earlier = [step for step in self.improvements if step is not improvement]
        return replace(self, improvements=(*earlier, improvement))

    def __str__(self) -> str:
        steps = " + ".join([self.start, *(step.value for step in self.improvements)])
        return f"{steps}, {counted(self.copied_views, 'copy', 'copies')} of views" if self.copied_views else steps
