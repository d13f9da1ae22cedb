"""The origin of a candidate plan, as data: measurements correct the forecasts of all plans of one kind, and remarks
print the origin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..analysis.copies.attempts import AttemptKind


class PlanSource(Enum):
    """The origin of a plan that does not come from segments."""

    SOLVER = "a solver's plan"
    LOOPS_ALONE = "loops alone"
    NO_COPIES = "nothing"


PlanKind = AttemptKind | PlanSource
"""Plans of one kind have similar forecast errors."""


@dataclass(frozen=True)
class Reduction:
    """The part of a plan that is kept: `kept` of its segments, or `kept` of its `places` copy groups."""

    kept: int
    places: int | None = None

    def __str__(self) -> str:
        return f"{self.kept} of them" if self.places is None else f"{self.kept} of its {self.places} places"


@dataclass(frozen=True)
class PlanOrigin:
    """The origin of a plan.

    Attributes:
        kind: Its segments, or the source of a plan without segments.
        peak_share: The budget of a solver, as a share of the peak in program order; None for other plans.
        reductions: The parts that were kept of a larger plan, in the order in which the plan was reduced.
    """

    kind: PlanKind
    peak_share: float | None = None
    reductions: tuple[Reduction, ...] = ()

    def reduced(self, reduction: Reduction) -> PlanOrigin:
        return replace(self, reductions=(*self.reductions, reduction))

    def __str__(self) -> str:
        source = self.kind.value if isinstance(self.kind, PlanSource) else str(self.kind)
        budget = "" if self.peak_share is None else f" for {self.peak_share:.0%} in program order"
        return ", ".join([f"{source}{budget}", *map(str, self.reductions)])
