"""The origin of a candidate plan, as data. Measurements of one plan correct the forecasts of all plans of the same
kind, and remarks print the origin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..choice.attempts import AttemptKind


class PlanSource(Enum):
    """The kind of a plan that does not come from segments."""

    SOLVER = "a solver's plan"
    LOOPS_ALONE = "loops alone"
    NO_COPIES = "nothing"


PlanKind = AttemptKind | PlanSource
"""Plans of one kind have similar forecast errors."""


@dataclass(frozen=True)
class Reduction:
    """The part of a larger plan that a smaller plan keeps.

    Attributes:
        kept: The number of segments, or of copy groups, that the smaller plan keeps.
        places: The number of copy groups of the larger plan; None if `kept` counts segments.
        policy: The policy under which the dropped segments are recomputed; "" if they are not recomputed.
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
    """The origin of a candidate plan.

    Attributes:
        kind: The kind of its attempt, or the source of a plan that does not come from an attempt.
        peak_share: The budget of a solver, as a share of the peak in program order; None for other plans.
        reductions: The reductions of a larger plan that led to this plan, in order.
    """

    kind: PlanKind
    peak_share: float | None = None
    reductions: tuple[Reduction, ...] = ()

    def with_reduction(self, reduction: Reduction) -> PlanOrigin:
        """Return the origin of a plan that results from one more reduction."""
        return replace(self, reductions=(*self.reductions, reduction))

    def __str__(self) -> str:
        source = self.kind.value if isinstance(self.kind, PlanSource) else str(self.kind)
        budget = "" if self.peak_share is None else f" for {self.peak_share:.0%} in program order"
        return ", ".join([f"{source}{budget}", *map(str, self.reductions)])
