"""Candidate plans for one step: the attempts that `recompute` compares without a budget, plans of the solvers, and
smaller plans made from both (`smaller_plans.py`).

The smaller plans of one plan form a family (`plan_family.py`), as do the plans of the solvers for budgets in program
order. Only the plans that a search visits are made and forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isinf
from typing import TYPE_CHECKING

from ..analysis.copies.attempts import Attempt
from ..analysis.copies.segment_budgets import SegmentLimits
from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.step.step import Step
from ..planning.calibrated_search import Prediction, Ratio
from ..planning.graph import Graph
from ..planning.plan import CopyGroup, Plan
from ..planning.plan_file import Note
from ..planning.solvers.result import Stop
from ..support.timing import part
from ..transforms.mark import marked_attributes
from ..transforms.plans.notes import notes_of
from .best_attempt import ScoredAttempt
from .budget.beside_segments import BesideSegments
from .plan_family import NEARLY_FITS, PlanFamily, UnscoredPlan
from .plan_origin import PlanOrigin, PlanSource, Reduction
from .smaller_plans import FAMILY_SIZE, fewer_groups, mix, thin_out, with_groups

if TYPE_CHECKING:
    from ..planning.solvers.solve_graph import PreparedGraph

THINNED = 4
"""Number of attempts that are also tried with fewer segments: half of them have the lowest peaks under the model of
XLA:CPU, the others the fewest extra FLOPs."""
SHARES = (0.16, 0.19, 0.22, 0.25, 0.28, 0.31, 0.34, 0.37, 0.4, 0.45, 0.5, 0.55, 0.7, 0.85)
"""Budgets of the solvers, as shares of the peak in program order. There are many, because a lower budget in program
order does not imply a lower need under XLA:CPU."""
FEWER_BUDGETS_FROM = 6000
"""Number of operations from which the solvers get half of the budgets, and each of their plans half of the smaller
plans."""
THINNED_SOLUTIONS = 2
"""Number of plans of the solvers that each search also tries with fewer copy groups."""
STRIDE = 3
"""Every third budget of the solvers is tried first."""


@dataclass(frozen=True)
class StepCandidate:
    """A plan for one step, with its forecast.

    Attributes:
        origin: The source of the plan.
        plan: The plan.
        notes: The marks of the step under the plan.
        need: The forecast need, as a share of the need of the plain step.
        work: The extra cost, in the unit that planners minimize; FLOPs by default.
    """

    origin: PlanOrigin
    plan: Plan
    notes: tuple[Note, ...]
    need: float
    work: int

    @property
    def prediction(self) -> Prediction:
        return Prediction(self.need, float(self.work), (self.origin.kind,))


@dataclass
class StepCandidates:
    """The candidates of one step that have been forecast.

    Attributes:
        graph: The graph of the step.
        forecast: The forecast of the peaks of a plan.
        share: The function from forecast peaks to the need, as a share of the need of the plain step.
        segment_limits: The user's limits on segments, which every plan has to keep; None without limits.
        notes: The marks of the step itself.
        forecasts: The candidates, in the order in which they were forecast.
    """

    graph: Graph
    forecast: Forecast
    share: Callable[[Peaks], float]
    segment_limits: SegmentLimits | None
    notes: tuple[Note, ...]
    forecasts: list[StepCandidate] = field(default_factory=list[StepCandidate])
    _families: list[tuple[StepCandidate, PlanFamily]] = field(default_factory=list[tuple[StepCandidate, PlanFamily]])
    _by_plan: list[tuple[Plan, StepCandidate]] = field(default_factory=list[tuple[Plan, StepCandidate]])
    _thinned: list[Plan] = field(default_factory=list[Plan])
    _solvers: PlanFamily | None = None
    _prepared: PreparedGraph | None = None

    @classmethod
    def of(
        cls,
        step: Step,
        attempts: Sequence[ScoredAttempt],
        forecast: Forecast,
        share: Callable[[Peaks], float],
        limits: SegmentLimits | None,
    ) -> StepCandidates:
        """Start with scored attempts. The candidates refer to operations by number, so that the step can be freed."""
        of_step = cls(step.graph, forecast, share, limits, tuple(notes_of(step)))
        thinned = {*_thinned(attempts, has_policy=False), *_thinned(attempts, has_policy=True)}
        wholes = dict[Attempt, StepCandidate]()
        for at, attempt in enumerate(attempts):
            planned = attempt.planned
            notes = tuple(notes_of(step, marked_attributes(planned.decided)))
            unscored = UnscoredPlan(PlanOrigin(planned.attempt.kind), planned.plan, notes, planned.segments)
            whole = of_step._forecast(unscored, attempt.peaks)
            if whole is None:
                continue
            wholes[planned.attempt] = whole
            if at in thinned:
                of_step._families += [(whole, family) for family in _by_segment(whole, planned.segments)]
            if policy := planned.attempt.policy:
                for other, larger in wholes.items():
                    if replace(other, policy=policy) == planned.attempt and larger is not whole:
                        mixtures = _by_policy(larger, whole, policy, planned.segments)
                        of_step._families += [(larger, family) for family in mixtures]
        return of_step

    @part("plan")
    def search(self, ratio: Ratio, stop: Stop) -> None:
        """Forecast plans around the least work that fits.

        Args:
            ratio: The expected need of a prediction as a multiple of the limit.
            stop: Ends the search.
        """
        solver_plans = self._search_solver_plans(ratio, stop)
        for whole, family in self._families:
            self._search_family(whole, family, ratio, stop)
        solutions = filter(None, map(self._forecast, solver_plans.made.values()))
        fitting = [candidate for candidate in solutions if ratio(candidate.prediction) <= 1]
        for candidate in sorted(fitting, key=lambda candidate: candidate.work)[:THINNED_SOLUTIONS]:
            if candidate.plan not in self._thinned:
                self._thinned.append(candidate.plan)
                families = [(candidate, family) for family in _by_place(self.graph, candidate, self._family_size)]
                self._families += families
                for whole, family in families:
                    self._search_family(whole, family, ratio, stop)

    def _search_solver_plans(self, ratio: Ratio, stop: Stop) -> PlanFamily:
        """Search the plans of the solvers, for budgets in program order; return them."""
        if self._solvers is None:
            self._solvers = PlanFamily(self._solver_plans())
        judge = partial(self._judge, ratio, None)
        has_limit = not isinf(ratio(Prediction(0.0, 0.0, (PlanSource.SOLVER,))))
        self._solvers.search(judge, stop, STRIDE if has_limit else 0)
        if has_limit and not any(ratio(candidate.prediction) <= 1 for candidate in self.forecasts):
            # Needs do not fall steadily with the budgets of the solvers: a plan between those visited may fit.
            self._solvers.visit_all(judge, stop)
        return self._solvers

    @property
    def _family_size(self) -> int:
        """The approximate number of smaller plans of a solver's plan, in each order."""
        return FAMILY_SIZE if len(self.graph) < FEWER_BUDGETS_FROM else FAMILY_SIZE // 2

    def _search_family(self, whole: StepCandidate, family: PlanFamily, ratio: Ratio, stop: Stop) -> None:
        """Search the family of a plan's smaller plans for a plan with less work than all candidates that fit. A plan
        that needs more than `NEARLY_FITS` times the limit is skipped."""
        if ratio(whole.prediction) <= NEARLY_FITS:
            works = [candidate.work for candidate in self.forecasts if ratio(candidate.prediction) <= 1]
            family.search(partial(self._judge, ratio, min(works, default=None)), stop)

    def _judge(self, ratio: Ratio, most: int | None, unscored: UnscoredPlan | None) -> float:
        """Return the expected need as a multiple of the limit; 0, without a forecast, for a plan whose work is at least
        `most`."""
        if most is not None and unscored is not None and unscored.plan.extra_cost(self.graph.cost) >= most:
            return 0.0
        candidate = self._forecast(unscored)
        return 0.0 if candidate is None else ratio(candidate.prediction)

    def _forecast(self, unscored: UnscoredPlan | None, peaks: Peaks | None = None) -> StepCandidate | None:
        """Make the candidate of a plan. None for a plan without copies, and for one that exceeds the user's limits."""
        if unscored is None or not unscored.plan.copies:
            return None
        for plan, candidate in self._by_plan:
            if plan == unscored.plan:
                return candidate
        if self.segment_limits is not None and self.segment_limits.violation(self.graph, unscored.plan):
            return None
        need = self.share(peaks or self.forecast.of_plan(unscored.plan, unscored.segments))
        work = unscored.plan.extra_cost(self.graph.cost)
        candidate = StepCandidate(unscored.origin, unscored.plan, unscored.notes, need, work)
        self._by_plan.append((unscored.plan, candidate))
        self.forecasts.append(candidate)
        return candidate

    def _solver_plans(self) -> list[Callable[[Stop], UnscoredPlan | None]]:
        shares = SHARES if len(self.graph) < FEWER_BUDGETS_FROM else SHARES[::2]
        return [partial(self._solver_plan, share_of_peak) for share_of_peak in shares]

    def _solver_plan(self, share_of_peak: float, stop: Stop) -> UnscoredPlan | None:
        # Only callers that need the solvers wait for their import.
        from ..planning.solvers.result import NoPlan
        from ..planning.solvers.solve_graph import PreparedGraph, SearchOptions, plan_within

        prepared = self._prepared = self._prepared or PreparedGraph(self.graph)
        budget = int(share_of_peak * prepared.peak_bytes)
        segments = BesideSegments({} if self.segment_limits is None else {self.graph.fingerprint: self.segment_limits})
        try:
            # Plans that only a long search finds take so much work that others of the same need are cheaper.
            options = SearchOptions(stop=stop, repeats_on_small=False)
            planner = partial(plan_within, budget=budget, options=options, prepared=prepared)
            plan = segments.plan(self.graph, planner)
        except NoPlan:
            return None
        return UnscoredPlan(PlanOrigin(PlanSource.SOLVER, share_of_peak), plan, self.notes, {})


def _thinned(attempts: Sequence[ScoredAttempt], has_policy: bool) -> set[int]:
    """Return the indices of the attempts that are tried with fewer segments: of the attempts with copies that have a
    policy of their own or not, half of `THINNED` with the lowest peaks, and as many with the fewest extra FLOPs."""
    eligible = [
        at
        for at, attempt in enumerate(attempts)
        if attempt.planned.plan.copies and bool(attempt.planned.attempt.policy) is has_policy
    ]
    by_peak = sorted(eligible, key=lambda at: attempts[at].peaks.xla)
    by_work = sorted(eligible, key=lambda at: attempts[at].planned.plan.extra_flops)
    return {*by_peak[: THINNED // 2], *by_work[: THINNED // 2]}


def _by_segment(whole: StepCandidate, segments: Mapping[int, str]) -> list[PlanFamily]:
    """Make the families of the plan with ever fewer segments."""

    def smaller(kept: frozenset[str], plan: Plan, _: Stop) -> UnscoredPlan:
        origin = whole.origin.reduced(Reduction(len(kept)))
        return UnscoredPlan(origin, plan, _without_marks_of_others(whole.notes, kept), segments)

    thinned = thin_out(whole.plan)
    return [PlanFamily([partial(smaller, names, plan) for names, plan in sequence]) for sequence in thinned]


def _by_policy(
    whole: StepCandidate, cheaper: StepCandidate, policy: str, segments: Mapping[int, str]
) -> list[PlanFamily]:
    """Make the families of the plan in which ever more segments are copied as in `cheaper`, its attempt under
    `policy`."""

    def mixed(kept: frozenset[str], plan: Plan, _: Stop) -> UnscoredPlan:
        origin = whole.origin.reduced(Reduction(len(kept), policy=policy))
        own = [note for note in whole.notes if note.segment is None or note.segment in kept]
        others = [note for note in cheaper.notes if note.segment is not None and note.segment not in kept]
        notes = tuple(sorted((*own, *others), key=lambda note: note.operation))
        return UnscoredPlan(origin, plan, notes, segments)

    return [
        PlanFamily([partial(mixed, names, plan) for names, plan in plans]) for plans in mix(whole.plan, cheaper.plan)
    ]


def _by_place(graph: Graph, whole: StepCandidate, steps: int) -> list[PlanFamily]:
    """Make the families of the plan with ever fewer copy groups."""

    def smaller(left: Sequence[CopyGroup], _: Stop) -> UnscoredPlan:
        origin = whole.origin.reduced(Reduction(len(left), len(whole.plan.groups)))
        return UnscoredPlan(origin, with_groups(graph, left), whole.notes, {})

    return [PlanFamily([partial(smaller, left) for left in fewer]) for fewer in fewer_groups(whole.plan, steps)]


def _without_marks_of_others(notes: Iterable[Note], names: frozenset[str]) -> tuple[Note, ...]:
    """Drop the marks of segments not in `names` from the notes; operations keep their segment names."""
    return tuple(
        note if note.segment is None or note.segment in names else replace(note, recompute=None, checkpoint=False)
        for note in notes
    )
