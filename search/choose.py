"""Choose among the attempts at a step: plan each, forecast its peaks, and choose by trust in the segments, then by the
lowest peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..analysis.copies.attempts import DEFAULT_ATTEMPT, MANY_OPERATIONS, Attempt, attempts_for
from ..analysis.copies.decide import explicit_mark
from ..analysis.memory.peaks import Forecast, Peaks
from ..analysis.request.segments import named_segments
from ..analysis.step.marks import is_forced
from ..analysis.step.step import Step
from ..dialects.names import Names
from ..options.recompute_options import RecomputeOptions
from ..options.selection import Selection
from ..planning.by_segment.by_structure import CutMethod, Cuts
from ..planning.by_segment.each_pass import in_each_pass
from ..planning.objective import WORTH_IT, is_worth_it, raises_peak
from ..planning.plan import Plan
from ..support.diagnostics import Remark, RemarkKind, Topic
from ..support.units import format_bytes, readable_bytes
from .planned_attempts import AttemptTargets, PlannedAttempt, plan_attempt

STRUCTURES = 3
"""Number of cuts by structure that are tried in addition to named segments: the score is an estimate, and its best cut
is not always the best."""
MOSTLY = 0.5
"""Share of the saved bytes outside all segments above which the segments are considered useless."""
AS_GOOD = 1.02
"""Factor between two peaks up to which the model of XLA:CPU cannot rank attempts."""
CLEARLY_MORE = 1.3
"""Factor above the lowest peak in program order from which the model of XLA:CPU does not evaluate a candidate of a step
with `MANY_OPERATIONS`. Of 89 choices for such steps, on the examples and benchmarks, this changes none."""
STRUCTURE_GAINS = 0.8
"""Segments by structure replace named ones if the ratio of their peaks by the model of XLA:CPU, squared, times the
ratio in program order, is below this: the model errs by about 7 % between programs that differ this much. On 32 steps
this is as good on average as trusting the model, and much better in the worst case."""
BLOCK_GAINS = 0.88
"""As `STRUCTURE_GAINS`, for segments by structure that replace repeated blocks without names."""


@dataclass(frozen=True)
class ScoredAttempt:
    """A planned attempt with the forecast of its peaks."""

    planned: PlannedAttempt
    peaks: Peaks

    @property
    def cut_method(self) -> CutMethod | None:
        """The method that cut the step into segments; None for named segments."""
        return self.planned.attempt.kind.cut_method

    @property
    def is_undivided(self) -> bool:
        """Whether the whole forward pass is one segment."""
        return self.planned.attempt.kind.segment_count == 1


@dataclass(frozen=True)
class ChosenAttempt:
    """The best of the scored attempts.

    Attributes:
        forecast: The forecast that scored them.
        before: The peaks of the unchanged step.
        chosen: The best attempt.
        tried: All scored attempts.
        refused: The reason why the unchanged step is better; None if it is not.
        is_free: Whether there are copies, and none of them is forced by a mark.
    """

    forecast: Forecast
    before: Peaks
    chosen: ScoredAttempt
    tried: tuple[ScoredAttempt, ...]
    refused: str | None
    is_free: bool = False

    def remarks(self, function: FuncOp) -> Iterator[Remark]:
        """Yield remarks on the choice, at the function of the step: the attempt, and values outside all segments."""
        attempt = self.chosen.planned.attempt
        if replace(attempt, chain=False) != DEFAULT_ATTEMPT:
            reason = f"{attempt}, chosen of {len(self.tried)} attempts"
            yield Remark(function, reason, RemarkKind.ANALYSIS, Topic.CHOICE)
        outside, saved = _saved_outside(self.chosen.planned)
        if outside > MOSTLY * saved:
            reason = (
                f"{format_bytes(outside)} of the {format_bytes(saved)} saved for the backward pass lie outside "
                "every segment: name more of the model (jax.named_scope), or leave the segments out"
            )
            amounts = ("outside_bytes", outside), ("saved_bytes", saved)
            yield Remark(function, reason, RemarkKind.ANALYSIS, amounts=amounts)


def _saved_outside(planned: PlannedAttempt) -> tuple[int, int]:
    """Return two numbers of bytes that are saved for the backward pass: outside all segments, and in total. Both are
    0 without segments."""
    step, members = planned.decided.step, planned.decided.resolved.members
    inside = {step.position(op) for operations in members.values() for op in operations}
    return _outside_of(step, inside) if inside else (0, 0)


def _outside_of(step: Step, inside: Set[int]) -> tuple[int, int]:
    """Return two numbers of bytes that are saved for the backward pass: of operations that are not `inside`, and in
    total."""
    graph = step.graph
    read = (value for op, makes in enumerate(graph.makes) if graph.forward[op] for value in makes)
    roots = {graph.root[value] for value in read if graph.gradient_readers[value]} - graph.constants
    made = [root for root in roots if graph.maker[root] >= 0]
    outside = [root for root in made if graph.maker[root] not in inside]
    return sum(graph.sizes[root] for root in outside), sum(graph.sizes[root] for root in made)


def choose_for(function: FuncOp, step: Step, options: RecomputeOptions) -> ChosenAttempt:
    """Choose as `choose` does, by the forecast for the function of the step."""
    return choose(step, options, Forecast.of(function, step, options.emission))


def choose(step: Step, options: RecomputeOptions, forecast: Forecast) -> ChosenAttempt:
    """Plan and forecast distinct attempts, at most `options.attempts`, and choose the best.

    Returns:
        The choice; `refused` is set if the unchanged step is better.

    Raises:
        BadSelection: For a selection that does not apply to the step.
    """
    planner = _AttemptPlanner(step, options)
    before = forecast.without_copies()

    def score(planned: PlannedAttempt) -> ScoredAttempt:
        return ScoredAttempt(planned, forecast.of_plan(planned.plan, planned.segments))

    def chain(scored: ScoredAttempt) -> ScoredAttempt:
        return score(planner.plan(replace(scored.planned.attempt, chain=True)))

    scored = [*map(score, islice(_distinct(planner.plans()), options.attempts))]
    if forecast.keeps_barriers and not scored[0].peaks.is_steady:
        scored.append(chain(scored[0]))
    chosen = best_attempt(scored, before, forecast.keeps_barriers)
    if forecast.keeps_barriers and not chosen.peaks.is_steady and not chosen.planned.attempt.chain:
        chosen = min(chosen, chain(chosen), key=lambda attempt: attempt.peaks.eager)
    is_forced_here = any(map(is_forced, step.phases.order.operations))
    is_free = bool(chosen.planned.plan.copies) and not is_forced_here
    refused = why_worse(before, chosen.peaks, forecast.keeps_barriers) if is_free else None
    return ChosenAttempt(forecast, before, chosen, tuple(scored), refused, is_free)


@dataclass
class _AttemptPlanner:
    """Plans attempts at one step. Attempts with the same segments share their decisions and targets."""

    step: Step
    options: RecomputeOptions
    _targets: dict[tuple[Cuts | None, bool], AttemptTargets] = field(
        default_factory=dict[tuple[Cuts | None, bool], AttemptTargets]
    )

    @cached_property
    def named(self) -> Mapping[Operation, str] | None:
        return named_segments(self.step.phases, self.options.selection)

    def plan(self, attempt: Attempt) -> PlannedAttempt:
        """Plan an attempt. Raises `BadSelection` for a selection that does not apply to the step."""
        selection, segmentation = self.options.selection, (attempt.cuts, attempt.own_outputs)
        if segmentation not in self._targets:
            named = None if attempt.cuts or selection.segment_count else self.named
            self._targets[segmentation] = AttemptTargets.of(self.step, selection, attempt, named)
        return plan_attempt(self.step, selection, attempt, self._targets[segmentation], self.options.copies)

    def plans(self) -> Iterator[PlannedAttempt]:
        """Yield the plan of each attempt, and its plan with copies for each pass of the gradient if that differs."""
        for attempt in _attempts(self.step, self.options.selection, self.named):
            planned = self.plan(attempt)
            yield planned
            if (each_pass := in_each_pass(self.step.graph, planned.plan)) is not planned.plan:
                yield PlannedAttempt(replace(attempt, each_pass=True), planned.decided, each_pass)


def _attempts(step: Step, selection: Selection, named: Mapping[Operation, str] | None) -> Iterator[Attempt]:
    operations = step.phases.order.operations
    stated = any(Names.SEGMENT in op.attributes or explicit_mark(op) is not None for op in operations)
    if not named:
        return attempts_for(step.graph, selection, named is None, stated)
    outside, saved = _outside_of(step, {step.position(op) for op in named})
    return attempts_for(step.graph, selection, True, stated, STRUCTURES if outside <= MOSTLY * saved else None)


def _distinct(attempts: Iterator[PlannedAttempt]) -> Iterator[PlannedAttempt]:
    """Yield the attempts whose plans differ; the first one even if it copies nothing, for its remarks."""
    seen = list[Plan]()
    for planned in attempts:
        if planned.plan not in seen and (planned.plan.copies or not seen):
            seen.append(planned.plan)
            yield planned


def best_attempt(scored: Sequence[ScoredAttempt], before: Peaks, keeps_barriers: bool) -> ScoredAttempt:
    """Select by trust, then memory: among the attempts with the most trusted kind of segments, the one with the lowest
    peak.

    Attempts with copies that improve on the unchanged step are preferred. A less trusted kind replaces a more trusted
    one only if it saves much more (`_by_trust`). Ties within `AS_GOOD` go to the lowest peak in program order, then to
    the first attempt.

    Args:
        before: The peaks of the unchanged step.
        keeps_barriers: Whether the target keeps the barriers that enforce the order of copies; the peak is then the one
            under the model of XLA:CPU.
    """
    if len(scored) == 1:
        return scored[0]

    def size(attempt: ScoredAttempt) -> int:
        return attempt.peaks.of_target(keeps_barriers)

    copying = [attempt for attempt in scored if attempt.planned.plan.copies] or scored
    if keeps_barriers:
        copying = contenders(copying, before)
    better = [attempt for attempt in copying if why_worse(before, attempt.peaks, keeps_barriers) is None] or copying
    better = [attempt for attempt in better if not (keeps_barriers and _needs_more(before, attempt.peaks))] or better
    return _nearly_smallest(_nearly_smallest(_by_trust(better, size), size), lambda attempt: attempt.peaks.in_order)[0]


def contenders(scored: Sequence[ScoredAttempt], before: Peaks) -> Sequence[ScoredAttempt]:
    """Return the attempts that may have the lowest peak under the model of XLA:CPU, judged by peaks that are cheap to
    compute.

    For a step with `MANY_OPERATIONS`, an attempt is left out if it raises a peak, or if its peak in program order is
    `CLEARLY_MORE` than the lowest one. The attempt with one segment for the whole step stays, since only the model
    shows its saving. For smaller steps the model takes little time.
    """
    if len(scored[0].planned.decided.step.graph) < MANY_OPERATIONS:
        return scored
    allowed = [attempt for attempt in scored if _why_peak_rises(before, attempt.peaks, True) is None] or scored
    most = CLEARLY_MORE * min(attempt.peaks.in_order for attempt in allowed)
    # By identity, as plans take long to compare.
    few = {id(attempt) for attempt in allowed if attempt.peaks.in_order <= most}
    return [attempt for attempt in scored if id(attempt) in few or attempt.is_undivided]


def _by_trust(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> Sequence[ScoredAttempt]:
    """Restrict the choice to named segments if there are any, else to repeated blocks, else to cuts by structure; a
    less trusted kind replaces a more trusted one if its gain exceeds the error of the models.

    The gain is the ratio of the peaks under the model of XLA:CPU, squared, times the ratio in program order.
    """
    believed = list[ScoredAttempt]()
    for method in (None, CutMethod.BLOCKS, CutMethod.STRUCTURE):
        of_method = [attempt for attempt in scored if attempt.cut_method is method]
        gains = BLOCK_GAINS if believed and believed[0].cut_method is CutMethod.BLOCKS else STRUCTURE_GAINS
        if not believed or (of_method and _total_gain(of_method, size) < gains * _total_gain(believed, size)):
            believed = of_method
    return believed


def _total_gain(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> int:
    return min(map(size, scored)) ** 2 * min(attempt.peaks.in_order for attempt in scored)


def _nearly_smallest(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> list[ScoredAttempt]:
    """Return the attempts whose size is at most `AS_GOOD` times the smallest."""
    smallest = min(map(size, scored))
    return [attempt for attempt in scored if size(attempt) <= AS_GOOD * smallest]


def _needs_more(before: Peaks, after: Peaks) -> bool:
    """Return whether the attempt has a higher peak than the unchanged step under the model of XLA:CPU."""
    return raises_peak(before.xla, after.xla)


def why_worse(before: Peaks, after: Peaks, keeps_barriers: bool) -> str | None:
    """Return the reason why the unchanged step is better; None if a peak falls by more than `WORTH_IT` and no peak
    rises by that share.

    `keeps_barriers`: whether the target keeps the barriers that enforce the order of copies, so that eager executors
    count too.
    """
    if (raised := _why_peak_rises(before, after, keeps_barriers)) is not None:
        return raised
    if any(is_worth_it(old, new) for _, old, new in _cheap_peaks(before, after, keeps_barriers)):
        return None
    if keeps_barriers and is_worth_it(before.xla, after.xla):
        return None
    old_xla, new_xla = readable_bytes(before.xla), readable_bytes(after.xla)
    xla = f", and from {old_xla} to {new_xla} under XLA:CPU" if keeps_barriers else ""
    old, new = readable_bytes(before.in_order), readable_bytes(after.in_order)
    return f"recomputing changes the peak from {old} to {new}{xla}: less than {100 * WORTH_IT:g} % saved"


def _why_peak_rises(before: Peaks, after: Peaks, keeps_barriers: bool) -> str | None:
    """Return the reason why the unchanged step is better if a peak rises, without the model of XLA:CPU; else None."""
    for peak_name, old, new in _cheap_peaks(before, after, keeps_barriers):
        if raises_peak(old, new):
            return f"recomputing raises {peak_name} from {readable_bytes(old)} to {readable_bytes(new)}"
    return None


def _cheap_peaks(before: Peaks, after: Peaks, keeps_barriers: bool) -> list[tuple[str, int, int]]:
    """Return the peaks that need no model of XLA:CPU: the name, the bytes before, and the bytes after."""
    pairs = [("the peak", before.in_order, after.in_order)]
    if keeps_barriers:
        pairs.append(("the peak of an executor that starts operations as soon as it can", before.eager, after.eager))
    return pairs
