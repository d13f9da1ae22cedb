"""The origin of a candidate plan, as data: measurements correct the forecasts of all plans of one kind, and remarks
print the origin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from .attempts import AttemptKind


class PlanSource(Enum):
    """The origin of a plan that does not come from segments."""

    SOLVER = "a solver's plan"
    LOOPS_ALONE = "loops alone"
    NO_COPIES = "nothing"


PlanKind = AttemptKind | PlanSource
"""Plans of one kind have similar forecast errors."""


@dataclass(frozen=True)
class Reduction:
    """The part of a plan that is kept.

    Attributes:
        kept: The number of segments, or of copy groups, that are kept.
        places: The number of copy groups of the plan; None for segments.
        policy: The policy under which the other segments are recomputed; "" if they are not recomputed.
    """

    kept: int
    places: int | None = None
    policy: str = ""

    def __str__(self) -> str:
        if self.places is not None:
            return f"{self.kept} of its {self.places} places"
        others = f", the others with {self.policy} inside" if self.policy else ""
        return f"{self.kept} of them{others}"


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
