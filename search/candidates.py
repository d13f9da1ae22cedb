"""Candidate plans for one step: those of `recompute` without a budget, plans of the solvers, and parts of these.

Each plan leads to a family of smaller ones: copies are left out segment by segment or place by place, in the order of
the backward pass, or by bytes freed per unit of work, the least first. The plans of the solvers for budgets in program
order are also a family. Within a family the extra work falls and the predicted memory nearly always rises, so that a
binary search finds the least work that fits: only the plans that it visits are made and forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isinf
from typing import TypeVar

from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.step.step import Step
from ..planning.calibrated_search import Prediction, Ratio
from ..planning.graph import Graph
from ..planning.pairs import plan_of_pairs
from ..planning.plan import CopyGroup, Plan
from ..planning.plan_file import Note
from ..planning.solvers.result import Stop
from ..support.timing import part
from ..transforms.mark import marked_attributes
from ..transforms.plans.limit_segments import SegmentLimits
from ..transforms.plans.notes import notes_of
from .budget.beside_segments import BesideSegments
from .choose import ScoredAttempt
from .plan_origin import PlanOrigin, PlanSource, Reduction

THINNED = 4
"""Number of the smallest segment-based candidates, half by each measure, that are also tried with segments left out."""
SHARES = (0.16, 0.19, 0.22, 0.25, 0.28, 0.31, 0.34, 0.37, 0.4, 0.45, 0.5, 0.55, 0.7, 0.85)
"""Budgets of the solvers, as shares of the peak in program order. There are many, because a lower budget in program
order does not imply a lower need under XLA:CPU."""
LARGE_STEP = 6000
"""Number of operations from which the solvers get half as many budgets and variants."""
THINNED_SOLUTIONS = 2
"""Number of plans of the solvers that are also tried with fewer places, each time that candidates are looked for."""
FAMILY_SIZE = 12
"""The approximate number of plans that are made of one plan in each of two orders."""

STRIDE = 3
"""Every third budget of the solvers is tried first."""
NEARLY_FITS = 1.2
"""Multiple of the limit up to which the neighbours of a plan may fit: needs do not rise steadily in a family."""


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


@dataclass(frozen=True)
class _Draft:
    """A plan without a forecast. `segments`: the segment of each operation of a segment whose early part may be
    delayed."""

    origin: PlanOrigin
    plan: Plan
    notes: tuple[Note, ...]
    segments: Mapping[int, str]


@dataclass
class _Family:
    """Plans in the order of falling work. `drafts`: functions that make one plan each, until `stop`, or return None if
    there is none."""

    drafts: Sequence[Callable[[Stop], _Draft | None]]
    made: dict[int, _Draft | None] = field(default_factory=dict[int, _Draft | None])

    def search(self, judge: Callable[[_Draft | None], float], stop: Stop, stride: int = 0) -> None:
        """Find the least work that fits. `judge`: returns the ratio of the need to the limit, or 0 to continue with
        less work.

        Plans that cannot be made are those with the lowest needs. stride: Look at every `stride`-th plan first, where
        needs do not rise steadily.
        """
        low, high = 0, len(self.drafts)
        if stride:
            grid = range(0, len(self.drafts), stride)
            low = 1 + max((at for at in grid if not stop() and judge(self.at(at, stop)) <= 1), default=-1)
            high = min(high, low - 1 + stride)
        while low < high and not stop():
            middle = (low + high) // 2
            if judge(self.at(middle, stop)) <= 1:
                low = middle + 1
            else:
                high = middle
        while low < len(self.drafts) and not stop() and judge(self.at(low, stop)) <= NEARLY_FITS:
            low += 1

    def visit_all(self, judge: Callable[[_Draft | None], float], stop: Stop) -> None:
        """Judge every plan."""
        for index in range(len(self.drafts)):
            if stop():
                return
            judge(self.at(index, stop))

    def at(self, index: int, stop: Stop) -> _Draft | None:
        """Return the plan at this index. A plan that was made after `stop` became true is not stored."""
        if index in self.made:
            return self.made[index]
        draft = self.drafts[index](stop)
        if not stop():
            self.made[index] = draft
        return draft


@dataclass
class StepCandidates:
    """The candidates of one step that have been forecast.

    share: From forecast peaks to the need. demand: Limits of the user that every plan has to keep.
    """

    graph: Graph
    forecast: Forecast
    share: Callable[[Peaks], float]
    demand: SegmentLimits | None
    notes: tuple[Note, ...]
    forecasts: list[StepCandidate] = field(default_factory=list[StepCandidate])
    _families: list[tuple[StepCandidate, _Family]] = field(default_factory=list[tuple[StepCandidate, _Family]])
    _by_plan: list[tuple[Plan, StepCandidate]] = field(default_factory=list[tuple[Plan, StepCandidate]])
    _thinned: list[Plan] = field(default_factory=list[Plan])
    _solvers: _Family | None = None

    @classmethod
    def of(
        cls,
        step: Step,
        attempts: Sequence[ScoredAttempt],
        forecast: Forecast,
        share: Callable[[Peaks], float],
        demand: SegmentLimits | None,
    ) -> StepCandidates:
        """Start with the candidates of `choose`. They refer to the step by numbers, so that the step can be freed."""
        of_step = cls(step.graph, forecast, share, demand, tuple(notes_of(step)))
        thinned = {
            *_least(attempts, lambda attempt: attempt.peaks.xla),
            *_least(attempts, lambda attempt: attempt.planned.plan.extra_flops),
        }
        for at, attempt in enumerate(attempts):
            planned = attempt.planned
            notes = tuple(notes_of(step, marked_attributes(planned.decided)))
            draft = _Draft(PlanOrigin(planned.attempt.kind), planned.plan, notes, planned.segments)
            whole = of_step._forecast(draft, attempt.peaks)
            if whole is not None and at in thinned:
                of_step._families += [(whole, family) for family in _by_segment(whole, planned.segments)]
        return of_step

    @part("plan")
    def search(self, ratio: Ratio, stop: Stop) -> None:
        """Forecast plans around the least work that fits."""
        if self._solvers is None:
            self._solvers = _Family(self._solver_drafts())
        judge = partial(self._judge, ratio, None)
        has_limit = not isinf(ratio(Prediction(0.0, 0.0, (PlanSource.SOLVER,))))
        self._solvers.search(judge, stop, STRIDE if has_limit else 0)
        if has_limit and not any(ratio(candidate.prediction) <= 1 for candidate in self.forecasts):
            # Needs do not fall steadily with the budgets of the solvers: one that was passed over may fit.
            self._solvers.visit_all(judge, stop)
        for whole, family in self._families:
            self._search(whole, family, ratio, stop)
        solved = filter(None, map(self._forecast, self._solvers.made.values()))
        fitting = [candidate for candidate in solved if ratio(candidate.prediction) <= 1]
        for candidate in sorted(fitting, key=lambda candidate: candidate.work)[:THINNED_SOLUTIONS]:
            if candidate.plan not in self._thinned:
                self._thinned.append(candidate.plan)
                steps = FAMILY_SIZE if len(self.graph) < LARGE_STEP else FAMILY_SIZE // 2
                families = [(candidate, family) for family in _by_place(self.graph, candidate, steps)]
                self._families += families
                for whole, family in families:
                    self._search(whole, family, ratio, stop)

    def _search(self, whole: StepCandidate, family: _Family, ratio: Ratio, stop: Stop) -> None:
        """If a plan fits, or nearly, search the family of its smaller plans for one with less work than any
        that fits."""
        if ratio(whole.prediction) <= NEARLY_FITS:
            works = [candidate.work for candidate in self.forecasts if ratio(candidate.prediction) <= 1]
            family.search(partial(self._judge, ratio, min(works, default=None)), stop)

    def _judge(self, ratio: Ratio, most: int | None, draft: _Draft | None) -> float:
        """Return the expected need as a multiple of the limit; 0, without a forecast, for a plan whose work is at least
        `most`."""
        if most is not None and draft is not None and draft.plan.extra_cost(self.graph.cost) >= most:
            return 0.0
        candidate = self._forecast(draft)
        return 0.0 if candidate is None else ratio(candidate.prediction)

    def _forecast(self, draft: _Draft | None, peaks: Peaks | None = None) -> StepCandidate | None:
        """Make the candidate of a plan; returns None for a plan without copies, or one that breaks a demand."""
        if draft is None or not draft.plan.copies:
            return None
        for plan, candidate in self._by_plan:
            if plan == draft.plan:
                return candidate
        if self.demand is not None and self.demand.broken(self.graph, draft.plan):
            return None
        need = self.share(peaks or self.forecast.of_plan(draft.plan, draft.segments))
        work = draft.plan.extra_cost(self.graph.cost)
        candidate = StepCandidate(draft.origin, draft.plan, draft.notes, need, work)
        self._by_plan.append((draft.plan, candidate))
        self.forecasts.append(candidate)
        return candidate

    def _solver_drafts(self) -> list[Callable[[Stop], _Draft | None]]:
        shares = SHARES if len(self.graph) < LARGE_STEP else SHARES[::2]
        return [partial(self._solved, share_of_peak) for share_of_peak in shares]

    def _solved(self, share_of_peak: float, stop: Stop) -> _Draft | None:
        # The solvers import numba, if it is installed: only callers that need them wait for it.
        from ..planning.liveness import peak_bytes
        from ..planning.solvers.result import NoPlan
        from ..planning.solvers.solve_graph import plan_within

        budget = int(share_of_peak * peak_bytes(self.graph))
        segments = BesideSegments({} if self.demand is None else {self.graph.fingerprint: self.demand})
        try:
            plan = segments.plan(self.graph, partial(plan_within, budget=budget, stop=stop))
        except NoPlan:
            return None
        return _Draft(PlanOrigin(PlanSource.SOLVER, share_of_peak), plan, self.notes, {})


def _least(attempts: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> list[int]:
    copying = [at for at, attempt in enumerate(attempts) if attempt.planned.plan.copies]
    return sorted(copying, key=lambda at: size(attempts[at]))[: THINNED // 2]


def _by_segment(whole: StepCandidate, segments: Mapping[int, str]) -> list[_Family]:
    """Make the families of a plan with ever fewer segments."""

    def draft(kept: frozenset[str], plan: Plan, _: Stop) -> _Draft:
        origin = whole.origin.reduced(Reduction(len(kept)))
        return _Draft(origin, plan, _without_marks_of_others(whole.notes, kept), segments)

    return [_Family([partial(draft, names, plan) for names, plan in thinned]) for thinned in thinned_out(whole.plan)]


def _by_place(graph: Graph, whole: StepCandidate, steps: int) -> list[_Family]:
    """Make the families of a plan with copies at ever fewer places."""

    def draft(left: Sequence[CopyGroup], _: Stop) -> _Draft:
        origin = whole.origin.reduced(Reduction(len(left), len(whole.plan.groups)))
        return _Draft(origin, with_groups(graph, left), whole.notes, {})

    return [_Family([partial(draft, left) for left in fewer]) for fewer in fewer_groups(whole.plan, steps)]


T = TypeVar("T")


def thinned_out(plan: Plan) -> Iterator[Sequence[tuple[frozenset[str], Plan]]]:
    """Yield two sequences of plans with ever fewer segments, each with the names of the remaining segments."""
    groups = dict[str, list[CopyGroup]]()
    for group in sorted(plan.groups, key=lambda group: group.before):
        groups.setdefault(group.segment, []).append(group)
    names = [name for name in groups if name]
    for order in (names, sorted(names, key=lambda name: _worth(groups[name]))):
        yield [(frozenset(kept), _with_segments(plan, frozenset(kept))) for kept in _fewer(order, FAMILY_SIZE)]


def _with_segments(plan: Plan, names: frozenset[str]) -> Plan:
    return replace(plan, groups=tuple([group for group in plan.groups if not group.segment or group.segment in names]))


def fewer_groups(plan: Plan, steps: int) -> Iterator[Sequence[Sequence[CopyGroup]]]:
    """Yield two sequences of ever smaller subsets of the plan's groups: groups are dropped in the order of the backward
    pass, and by bytes saved per FLOP, the least first."""
    in_turn = sorted(plan.groups, key=lambda group: group.before)
    for order in (in_turn, sorted(in_turn, key=lambda group: _worth([group]))):
        yield list(_fewer(order, steps))


def with_groups(graph: Graph, groups: Iterable[CopyGroup]) -> Plan:
    """Make the plan of these groups alone. Reads of copies in other groups become reads of the originals."""
    # The solvers import numba, if it is installed: only callers that need them wait for it.
    from ..planning.solvers.solve_graph import with_views

    pairs = {(group.before, op) for group in groups for op in group.operations}
    return plan_of_pairs(graph, with_views(graph, pairs))


def _fewer(order: Sequence[T], steps: int) -> Iterator[Sequence[T]]:
    """Yield suffixes of the sequence, ever shorter, in about `steps` steps."""
    every = max(1, len(order) // steps)
    for count in range(every, len(order), every):
        yield order[count:]


def _worth(groups: Iterable[CopyGroup]) -> float:
    copied = list(groups)
    return sum(group.saved_bytes for group in copied) / (1 + sum(group.extra_flops for group in copied))


def _without_marks_of_others(notes: Iterable[Note], names: frozenset[str]) -> tuple[Note, ...]:
    """Drop the marks of segments not in `names` from the notes; operations keep their segment names."""
    return tuple(
        note if note.segment is None or note.segment in names else replace(note, recompute=None, checkpoint=False)
        for note in notes
    )
