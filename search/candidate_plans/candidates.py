"""Collect candidate plans for one step: the plans of the attempts that `recompute` compares without a budget, plans of
the solvers (`solver_plans.py`), and smaller plans made from both (`candidate_families.py`).

The smaller plans that are made from one plan form a family (`plan_family.py`). The plans of the solvers for different
budgets in program order also form a family. Only the plans that a search visits are made and forecast
(`step_forecasts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ...analysis.forecasts.peaks import Forecast, Peaks
from ...analysis.step.step import Step
from ...planning.calibrated_search import Ratio
from ...planning.graph import Graph
from ...planning.plan import Plan
from ...planning.solvers.result import Stop
from ...support.timing import part
from ...transforms.plans.notes import notes_of
from ...transforms.plans.write_decisions import marked_attributes
from ..choice.attempts import Attempt
from ..choice.best_attempt import ScoredAttempt
from ..local_choices.segments_within_budgets import SegmentLimits
from .candidate_families import (
    ReducedPlans,
    families_by_place,
    families_by_policy,
    families_by_segment,
    thinned_attempts,
)
from .plan_family import NEARLY_FITTING_FACTOR, UnscoredPlan
from .plan_origin import PlanOrigin
from .plan_reduction import FAMILY_SIZE
from .solver_plans import FEWER_BUDGETS_FROM, SolverPlans
from .step_forecasts import StepCandidate, StepForecasts

MAX_THINNED_SOLUTIONS = 2
"""Maximum number of solver plans for which each search also tries plans with fewer copy groups, since each makes two
families of plans to search. Those with the least work that fit are tried."""


@dataclass
class StepCandidates:
    """The candidates of one step: the plans that have been forecast, and the families of plans to search.

    Attributes:
        forecasts: The plans that have been forecast.
        solvers: The plans of the solvers.
    """

    forecasts: StepForecasts
    solvers: SolverPlans
    _families: list[ReducedPlans] = field(default_factory=list[ReducedPlans])
    _thinned: set[Plan] = field(default_factory=set[Plan])

    @classmethod
    def of(
        cls,
        step: Step,
        attempts: Sequence[ScoredAttempt],
        forecast: Forecast,
        share_of: Callable[[Peaks], float],
        limits: SegmentLimits | None,
        first: Iterable[StepCandidate] = (),
    ) -> StepCandidates:
        """Create the candidates of scored attempts. The candidates refer to operations by index, so that the IR of the
        step can be freed.

        Args:
            step: The step.
            attempts: The attempts, with their peaks.
            forecast, share_of, limits: As in `StepForecasts`.
            first: Candidates that precede the candidates of the attempts.
        """
        forecasts = StepForecasts(step.graph, forecast, share_of, limits, list(first))
        candidates = cls(forecasts, SolverPlans(step.graph, limits, tuple(notes_of(step))))
        thinned = thinned_attempts(attempts)
        wholes = dict[Attempt, StepCandidate]()
        for at, attempt in enumerate(attempts):
            planned = attempt.planned
            notes = tuple(notes_of(step, marked_attributes(planned.decided)))
            unscored = UnscoredPlan(PlanOrigin(planned.attempt.kind), planned.plan, notes, planned.segments)
            whole = forecasts.candidate_of(unscored, attempt.peaks)
            if whole is None:
                continue
            wholes[planned.attempt] = whole
            if at in thinned:
                candidates._families += families_by_segment(whole, planned.segments)
            for larger in _without_policy(planned.attempt, wholes):
                candidates._families += families_by_policy(larger, whole, planned.attempt.policy, planned.segments)
        return candidates

    @property
    def graph(self) -> Graph:
        """The graph of the step."""
        return self.forecasts.graph

    @part("plan")
    def search(self, ratio: Ratio, stop: Stop) -> None:
        """Forecast plans with little more work than the cheapest plan that is expected to fit.

        Args:
            ratio: Maps a prediction to the expected need of its plan, as a multiple of the limit.
            stop: A predicate that ends the search.
        """
        solutions = self.solvers.search(self.forecasts, ratio, stop)
        for reduced in self._families:
            self._search_family(reduced, ratio, stop)
        fitting = [candidate for candidate in solutions if ratio(candidate.prediction) <= 1]
        for candidate in sorted(fitting, key=lambda candidate: candidate.work)[:MAX_THINNED_SOLUTIONS]:
            if candidate.plan not in self._thinned:
                self._thinned.add(candidate.plan)
                families = families_by_place(self.graph, candidate, self._family_size)
                self._families += families
                for reduced in families:
                    self._search_family(reduced, ratio, stop)

    @property
    def _family_size(self) -> int:
        """The approximate number of smaller plans that are derived from a solver's plan, for each order in which copies
        are dropped."""
        return FAMILY_SIZE if len(self.graph) < FEWER_BUDGETS_FROM else FAMILY_SIZE // 2

    def _search_family(self, reduced: ReducedPlans, ratio: Ratio, stop: Stop) -> None:
        """Search the smaller plans of a candidate for a plan with less work than all candidates that are expected to
        fit. Skip the family if the candidate itself needs more than `NEARLY_FITTING_FACTOR` times the limit."""
        if ratio(reduced.whole.prediction) <= NEARLY_FITTING_FACTOR:
            work_limit = self.forecasts.least_fitting_work(ratio)
            reduced.family.search(partial(self.forecasts.judge, ratio, work_limit=work_limit), stop)


def _without_policy(attempt: Attempt, wholes: Mapping[Attempt, StepCandidate]) -> list[StepCandidate]:
    """Return the candidates of all attempts that differ from `attempt` only in the policy inside segments. The result
    is empty for an attempt without its own policy."""
    if not attempt.policy:
        return []
    return [
        candidate
        for other, candidate in wholes.items()
        if candidate is not wholes[attempt] and replace(other, policy=attempt.policy) == attempt
    ]
