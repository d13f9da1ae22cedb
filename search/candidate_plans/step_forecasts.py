"""Forecast the candidate plans of one step. Each plan is forecast once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...analysis.forecasts.peaks import Forecast, Peaks
from ...planning.calibrated_search import Prediction, Ratio
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.plan_file import OperationNote
from ..local_choices.segments_within_budgets import SegmentLimits
from .plan_family import LESS_WORK_NEXT, UnscoredPlan
from .plan_origin import PlanOrigin


@dataclass(frozen=True)
class StepCandidate:
    """A plan for one step, with its forecast.

    Attributes:
        origin: The source of the plan.
        plan: The plan.
        notes: The attributes that operations have under the plan.
        need_share: The forecast memory need, as a share of the plain step's need.
        work: The extra cost, in the unit that planners minimize; FLOPs by default.
    """

    origin: PlanOrigin
    plan: Plan
    notes: tuple[OperationNote, ...]
    need_share: float
    work: int

    @property
    def prediction(self) -> Prediction:
        """The need and the work, as a prediction for the calibrated search."""
        return Prediction(self.need_share, float(self.work), (self.origin.kind,))


@dataclass
class StepForecasts:
    """The plans of one step that have been forecast.

    Attributes:
        graph: The graph of the step.
        forecast: The forecaster of the peaks of a plan.
        share_of: A function that maps forecast peaks to the need, as a share of the need of the plain step.
        segment_limits: The limits of segments with budgets; None if no segment has a budget. Every plan must meet these
            limits.
        candidates: The candidates, in the order in which they were forecast.
    """

    graph: Graph
    forecast: Forecast
    share_of: Callable[[Peaks], float]
    segment_limits: SegmentLimits | None
    candidates: list[StepCandidate] = field(default_factory=list[StepCandidate])
    _by_plan: dict[Plan, StepCandidate] = field(default_factory=dict[Plan, StepCandidate])

    def candidate_of(self, unscored: UnscoredPlan | None, peaks: Peaks | None = None) -> StepCandidate | None:
        """Return the candidate for a plan, and forecast the plan if it is new. Return None for a plan without copies,
        and for a plan that exceeds the segment limits.

        `peaks`: the forecast peaks of the plan, if they are already computed.
        """
        if unscored is None or not unscored.plan.copies:
            return None
        if (earlier := self._by_plan.get(unscored.plan)) is not None:
            return earlier
        if self.segment_limits is not None and self.segment_limits.violation(self.graph, unscored.plan):
            return None
        need_share = self.share_of(peaks or self.forecast.of_plan(unscored.plan, unscored.segments))
        work = unscored.plan.extra_cost(self.graph.cost)
        candidate = StepCandidate(unscored.origin, unscored.plan, unscored.notes, need_share, work)
        self._by_plan[unscored.plan] = candidate
        self.candidates.append(candidate)
        return candidate

    def judge(self, ratio: Ratio, unscored: UnscoredPlan | None, work_limit: int | None = None) -> float:
        """Return the expected need of a plan as a multiple of the limit, or `LESS_WORK_NEXT` for a plan that is not a
        candidate.

        `work_limit`: if the work of the plan is at least this limit, the plan is not forecast, and `LESS_WORK_NEXT` is
            returned.
        """
        if unscored is None:
            return LESS_WORK_NEXT
        if work_limit is not None and unscored.plan.extra_cost(self.graph.cost) >= work_limit:
            return LESS_WORK_NEXT
        candidate = self.candidate_of(unscored)
        return LESS_WORK_NEXT if candidate is None else ratio(candidate.prediction)

    def least_fitting_work(self, ratio: Ratio) -> int | None:
        """Return the least work of all candidates that are expected to fit; None if no candidate is expected to fit."""
        return min((item.work for item in self.candidates if ratio(item.prediction) <= 1), default=None)
