"""Choose among the candidates of a step: plan each, forecast its peaks, and take the lowest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..analysis.copies.attempts import FIRST, Attempt, attempts_for
from ..analysis.copies.copying import CloneOptions, completed, refused_marks
from ..analysis.copies.decide import Decisions, decide, explicit_mark
from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.request.segments import named_segments
from ..analysis.step.marks import asks_to_recompute, is_forced, is_to_recompute
from ..analysis.step.step import Step
from ..dialects.names import Names
from ..options.selection import Selection
from ..planning.by_segment.by_structure import CutMethod, Cuts
from ..planning.by_segment.copy_requests import Targets
from ..planning.by_segment.each_pass import in_each_pass
from ..planning.objective import AS_GOOD, BLOCK_GAINS, MOSTLY, STRUCTURE_GAINS, STRUCTURES, WORTH_IT
from ..planning.plan import Plan
from ..support.diagnostics import Remark, RemarkKind, Topic
from ..support.timing import part


@dataclass(frozen=True)
class PlannedAttempt:
    """An attempt with its decisions and its plan; the IR is unchanged."""

    attempt: Attempt
    decided: Decisions
    plan: Plan

    @cached_property
    def segments(self) -> Mapping[int, str]:
        """The segment of each operation of a segment that is recomputed, in program order."""
        position = self.decided.step.position
        recomputed = [decision for decision in self.decided.decisions if decision.recomputed and decision.segment]
        segment_of = {position(op): decision.segment for decision in recomputed for op in decision.operations}
        return dict(sorted(segment_of.items()))


@dataclass(frozen=True)
class AttemptTargets:
    """The decisions of an attempt and the values to recompute for them; both are independent of the attempt's copying
    options."""

    decided: Decisions
    targets: Targets

    @classmethod
    @part("plan")
    def of(
        cls, step: Step, selection: Selection, attempt: Attempt, named: Mapping[Operation, str] | None = None
    ) -> AttemptTargets:
        """Decide for an attempt. `named`: the named segments, if already computed. Raises `BadSelection`."""
        decided = decide(step, selection, attempt, named, staged=False)
        unheard = frozenset(op for op, _ in refused_marks(step, selection.permission))
        targets, spoken_of = _targets_of_decisions(step, decided, unheard)
        return cls(decided, completed(step, targets, spoken_of))


@part("plan")
def plan_attempt(
    step: Step, selection: Selection, attempt: Attempt, targets: AttemptTargets, copies: int = 2
) -> PlannedAttempt:
    """Plan an attempt. `targets`: of the attempt, or of one with the same cuts and saved values. `copies`: the maximum
    number of copies of one operation."""
    options = CloneOptions(copies, attempt.chain, attempt.beside, attempt.each_pass, permission=selection.permission)
    return PlannedAttempt(attempt, targets.decided, options.plan(step, targets.targets))


def _targets_of_decisions(step: Step, decided: Decisions, unheard: Set[Operation]) -> tuple[Targets, frozenset[int]]:
    """Compute the targets that the marks written for these decisions would give, and the operations with marks.

    `unheard`: operations that may not run twice, regardless of their marks say.
    """
    segments, values, own = dict[int, str](), set[int](), dict[int, frozenset[int]]()
    covered = set[int]()
    settled = set[Operation]()
    for decision in decided.decisions:
        if not decision.recomputed:
            settled.update(op for op in decision.operations if explicit_mark(op) and not is_forced(op))
            continue
        own.update({step.number(value): readers for value, readers in decision.own.items()})
        for op in decision.operations:
            index = step.position(op)
            covered.add(index)
            if decision.segment:
                segments[index] = decision.segment
            if explicit_mark(op) is None:
                values.update(step.number(result) for result in op.results if result in decision.values)
    for index, op in enumerate(step.phases.order.operations):
        if not op.attributes:
            # Without attributes it is neither marked nor in a segment.
            continue
        if (Names.RECOMPUTE in op.attributes and op not in unheard) or Names.CHECKPOINT in op.attributes:
            covered.add(index)
        if not step.graph.forward[index]:
            continue
        stated = op.attributes.get(Names.SEGMENT)
        if isinstance(stated, StringAttr):
            segments.setdefault(index, stated.data)
        if op not in settled and op not in unheard and asks_to_recompute(op):
            values.update(step.number(result) for result in op.results if is_to_recompute(result))
    for value in values:
        segments.setdefault(step.graph.maker[value], "")
    return Targets(segments, frozenset(values), own), frozenset(covered)


@dataclass(frozen=True)
class ScoredAttempt:
    """A planned attempt with the forecast of its peaks."""

    planned: PlannedAttempt
    peaks: Peaks

    @property
    def cut_method(self) -> CutMethod | None:
        """The method that cut the step into segments; None for named segments."""
        return self.planned.attempt.kind.cut_method


@dataclass(frozen=True)
class ChosenAttempt:
    """The best of the attempts that were scored.

    refused: The reason why the unchanged step is better; None if it is not.
    is_free: Whether the step may stay unchanged: no mark forces a copy.
    """

    before: Peaks
    chosen: ScoredAttempt
    tried: tuple[ScoredAttempt, ...]
    refused: str | None
    is_free: bool = False

    def remarks(self, function: FuncOp) -> Iterator[Remark]:
        """Yield remarks on the choice, at the function of the step."""
        attempt = self.chosen.planned.attempt
        if replace(attempt, chain=False) != FIRST:
            reason = f"{attempt}, chosen of {len(self.tried)} attempts"
            yield Remark(function, reason, RemarkKind.ANALYSIS, Topic.CHOICE)
        outside, saved = _saved_outside(self.chosen.planned)
        if outside > MOSTLY * saved:
            reason = (
                f"{outside} of the {saved} bytes that are saved for the backward pass lie outside of every segment: "
                "name more of the model (jax.named_scope), or leave the segments out"
            )
            yield Remark(function, reason, RemarkKind.ANALYSIS)


def _saved_outside(planned: PlannedAttempt) -> tuple[int, int]:
    """Return the bytes that the backward pass reads: (made outside of all segments, in total); zeros without
    segments."""
    step, members = planned.decided.step, planned.decided.resolved.members
    inside = {step.position(op) for operations in members.values() for op in operations}
    return _outside_of(step, inside) if inside else (0, 0)


def _outside_of(step: Step, inside: Set[int]) -> tuple[int, int]:
    """Return the bytes that the backward pass reads: (made by none of these operations, in total)."""
    graph = step.graph
    read = (value for op, makes in enumerate(graph.makes) if graph.forward[op] for value in makes)
    roots = {graph.root[value] for value in read if graph.gradient_readers[value]} - graph.constants
    made = [root for root in roots if graph.maker[root] >= 0]
    outside = [root for root in made if graph.maker[root] not in inside]
    return sum(graph.sizes[root] for root in outside), sum(graph.sizes[root] for root in made)


def choose(step: Step, selection: Selection, forecast: Forecast, attempts: int, copies: int = 2) -> ChosenAttempt:
    """Plan and forecast up to `attempts` distinct attempts and choose the best; `refused` is set if the unchanged step
    is better. Raises `BadSelection`."""

    named = named_segments(step.phases, selection)
    targets_of = dict[tuple[Cuts | None, bool], AttemptTargets]()

    def planned(attempt: Attempt) -> PlannedAttempt:
        # How it is copied decides nothing.
        place = attempt.cuts, attempt.own_outputs
        if place not in targets_of:
            targets_of[place] = AttemptTargets.of(
                step, selection, attempt, None if attempt.cuts or selection.segment_count else named
            )
        return plan_attempt(step, selection, attempt, targets_of[place], copies)

    def score(attempt_plan: PlannedAttempt) -> ScoredAttempt:
        return ScoredAttempt(attempt_plan, forecast.of_plan(attempt_plan.plan, attempt_plan.segments))

    before = forecast.without_copies()

    def every() -> Iterator[PlannedAttempt]:
        for attempt in _attempts(step, selection, named):
            attempt_plan = planned(attempt)
            yield attempt_plan
            if (again := in_each_pass(step.graph, attempt_plan.plan)) is not attempt_plan.plan:
                yield PlannedAttempt(replace(attempt, each_pass=True), attempt_plan.decided, again)

    scored = [*map(score, islice(_distinct(every()), attempts))]
    if forecast.ordered and not scored[0].peaks.is_steady:
        scored.append(score(planned(replace(scored[0].planned.attempt, chain=True))))
    chosen = least(scored, before, forecast.ordered)
    if forecast.ordered and not chosen.peaks.is_steady and not chosen.planned.attempt.chain:
        chained = score(planned(replace(chosen.planned.attempt, chain=True)))
        chosen = min(chosen, chained, key=lambda attempt_plan: attempt_plan.peaks.eager)
    forced = any(map(is_forced, step.phases.order.operations))
    nothing = forced or not chosen.planned.plan.copies
    refused = None if nothing else why_worse(before, chosen.peaks, forecast.ordered)
    return ChosenAttempt(before, chosen, tuple(scored), refused, not nothing)


def _attempts(step: Step, selection: Selection, named: Mapping[Operation, str] | None) -> Iterator[Attempt]:
    operations = step.phases.order.operations
    stated = any(Names.SEGMENT in op.attributes or explicit_mark(op) is not None for op in operations)
    if not named:
        return attempts_for(step.graph, selection, named is None, stated)
    outside, saved = _outside_of(step, {step.position(op) for op in named})
    return attempts_for(step.graph, selection, True, stated, STRUCTURES if outside <= MOSTLY * saved else None)


def _distinct(attempt_plans: Iterator[PlannedAttempt]) -> Iterator[PlannedAttempt]:
    """Yield the attempts whose plans differ; the first one even if it copies nothing, for its remarks."""
    seen = list[Plan]()
    for attempt_plan in attempt_plans:
        if attempt_plan.plan not in seen and (attempt_plan.plan.copies or not seen):
            seen.append(attempt_plan.plan)
            yield attempt_plan


def least(scored: Sequence[ScoredAttempt], before: Peaks, ordered: bool) -> ScoredAttempt:
    """Select the attempt with the lowest peak. Ties within `AS_GOOD` go to the lower peak in program order, then to the
    first."""
    if len(scored) == 1:
        return scored[0]
    size: Callable[[ScoredAttempt], int] = (
        (lambda attempt: attempt.peaks.xla) if ordered else (lambda attempt: attempt.peaks.in_order)
    )
    copying = [attempt for attempt in scored if attempt.planned.plan.copies] or scored
    better = [attempt for attempt in copying if why_worse(before, attempt.peaks, ordered) is None] or copying
    better = [attempt for attempt in better if not (ordered and _needs_more(before, attempt.peaks))] or better
    return _as_good(_as_good(_by_trust(better, size), size), lambda attempt: attempt.peaks.in_order)[0]


def _by_trust(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> Sequence[ScoredAttempt]:
    """Restrict the choice to named segments if there are any; to repeated blocks, or cuts by structure alone, if their
    gain exceeds the models' error.

    The gain is the product of the shares of the peak that both models predict, that of XLA:CPU squared.
    """
    believed = list[ScoredAttempt]()
    for method in (None, CutMethod.BLOCKS, CutMethod.STRUCTURE):
        of_method = [attempt for attempt in scored if attempt.cut_method is method]
        gains = BLOCK_GAINS if believed and believed[0].cut_method is CutMethod.BLOCKS else STRUCTURE_GAINS
        if not believed or (of_method and _gained(of_method, size) < gains * _gained(believed, size)):
            believed = of_method
    return believed


def _gained(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> int:
    return min(map(size, scored)) ** 2 * min(attempt.peaks.in_order for attempt in scored)


def _as_good(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> list[ScoredAttempt]:
    """Return the attempts whose size is at most `AS_GOOD` times the smallest."""
    least = min(map(size, scored))
    return [attempt for attempt in scored if size(attempt) <= AS_GOOD * least]


def _needs_more(before: Peaks, after: Peaks) -> bool:
    """Return whether the attempt needs more than the plain step under the model of XLA:CPU."""
    return after.xla > before.xla * (1 + WORTH_IT)


def why_worse(before: Peaks, after: Peaks, ordered: bool) -> str | None:
    """Return the reason why the unchanged step is better; None if some peak falls by a worthwhile share and no peak
    rises as much.

    `ordered`: the step is for executors with an order of their own.
    """
    pairs = [("the peak", before.in_order, after.in_order)]
    if ordered:
        pairs.append(("the peak of an executor that starts operations as soon as it can", before.eager, after.eager))
    for peak_name, old, new in pairs:
        if new > old * (1 + WORTH_IT):
            return f"recomputing takes {peak_name} from {old} to {new} bytes"
    if any(_is_worth_it(old, new) for _, old, new in pairs):
        return None
    if ordered and _is_worth_it(before.xla, after.xla):
        return None
    under_xla = f", and from {before.xla} to {after.xla} under XLA:CPU" if ordered else ""
    return (
        f"recomputing takes the peak from {before.in_order} to {after.in_order} bytes{under_xla}: less than "
        f"{100 * WORTH_IT:g} % saved"
    )


def _is_worth_it(before: int, after: int) -> bool:
    return after < before * (1 - WORTH_IT)
