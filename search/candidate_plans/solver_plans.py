"""Make the solvers' plans for one step. The plans for different budgets in program order form a family. A search in
this family finds the plan with the least work within the module's budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import isinf
from typing import TYPE_CHECKING

from ...planning.calibrated_search import Prediction, Ratio
from ...planning.graph import Graph
from ...planning.plan_file import OperationNote
from ...planning.solvers.result import NoPlan, Stop
from ..beside_segments import SegmentLimitsByGraph
from ..local_choices.segments_within_budgets import SegmentLimits
from .plan_family import PlanFamily, UnscoredPlan
from .plan_origin import PlanOrigin, PlanSource
from .step_forecasts import StepCandidate, StepForecasts

if TYPE_CHECKING:
    from ...planning.solvers.solve_graph import PreparedGraph

BUDGET_SHARES = (0.16, 0.19, 0.22, 0.25, 0.28, 0.31, 0.34, 0.37, 0.4, 0.45, 0.5, 0.55, 0.7, 0.85)
"""The budgets for the solvers, as shares of the peak in program order. There are many of them, because a lower budget
in program order does not imply a lower need under XLA:CPU."""
FEWER_BUDGETS_FROM = 6000
"""In a step with at least this number of operations, only half of the budgets are tried, and only half of the smaller
plans of each solver's plan, to limit the time of a search."""
BUDGET_STRIDE = 3
"""The solvers first try every third budget, and then search between them. A binary search alone misses plans that fit,
because needs under XLA:CPU do not rise steadily with the budgets."""


@dataclass
class SolverPlans:
    """The solvers' plans for one step. Only the plans that a search visits are made.

    Attributes:
        graph: The graph of the step.
        segment_limits: The limits of segments with budgets; None if no segment has a budget. Segments with budgets are
            planned before the rest of the step.
        notes: The attributes of operations in the unchanged step.
    """

    graph: Graph
    segment_limits: SegmentLimits | None
    notes: tuple[OperationNote, ...]
    _family: PlanFamily = field(init=False)

    def __post_init__(self) -> None:
        shares = BUDGET_SHARES if len(self.graph) < FEWER_BUDGETS_FROM else BUDGET_SHARES[::2]
        self._family = PlanFamily([partial(self._plan, share_of_peak) for share_of_peak in shares])

    def search(self, forecasts: StepForecasts, ratio: Ratio, stop: Stop) -> Sequence[StepCandidate]:
        """Forecast plans with little more work than the cheapest plan that fits. Return the candidates for all plans
        that were made so far."""
        judge = partial(forecasts.judge, ratio)
        if not _has_limit(ratio):
            self._family.search(judge, stop)
        else:
            self._family.search(judge, stop, BUDGET_STRIDE)
            if forecasts.least_fitting_work(ratio) is None:
                # Needs do not fall steadily with the budgets of the solvers, so a plan between the visited ones may
                # fit.
                self._family.visit_all(judge, stop)
        return [candidate for candidate in map(forecasts.candidate_of, self._family.made.values()) if candidate]

    @cached_property
    def _prepared(self) -> PreparedGraph:
        from ...planning.solvers.solve_graph import PreparedGraph

        return PreparedGraph(self.graph)

    def _plan(self, share_of_peak: float, stop: Stop) -> UnscoredPlan | None:
        """Return a plan that needs at most the given share of the plain peak in program order; None if no plan is
        found."""
        # The solvers are imported here, so that only callers that need them wait for the import.
        from ...planning.solvers.solve_graph import SearchOptions, plan_within

        budget = int(share_of_peak * self._prepared.peak_bytes)
        segments = SegmentLimitsByGraph(
            {} if self.segment_limits is None else {self.graph.fingerprint: self.segment_limits}
        )
        try:
            # A plan that only a long search finds takes more work than other plans with the same need.
            options = SearchOptions(stop=stop, repeats_on_small=False, searches_longer=False)
            planner = partial(plan_within, budget=budget, options=options, prepared=self._prepared)
            plan = segments.plan(self.graph, planner)
        except NoPlan:
            return None
        return UnscoredPlan(PlanOrigin(PlanSource.SOLVER, share_of_peak), plan, self.notes, {})


def _has_limit(ratio: Ratio) -> bool:
    """Return whether needs are compared with a limit. Without a limit, the ratio of every need is infinite."""
    return not isinf(ratio(Prediction(0.0, 0.0, (PlanSource.SOLVER,))))
