"""Choose among the attempts at a step: plan each attempt, forecast its peaks, and choose by the order of preference in
`best_attempt.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ...analysis.forecasts.peaks import Forecast, Peaks
from ...analysis.request.segments import named_segments
from ...analysis.step.marks import is_forced
from ...analysis.step.step import Step
from ...dialects.names import Names
from ...options.recompute_options import RecomputeOptions
from ...options.selection import Selection, SelectionByFunction
from ...planning.plan import Plan
from ...support.counted import counted
from ...support.remarks import Remark, RemarkKind, Topic
from ...support.units import format_bytes
from .attempts import DEFAULT_ATTEMPT, Attempt
from .best_attempt import ScoredAttempt, best_attempt, steadier_attempt, tries_chained_groups, why_refused
from .planned_attempts import AttemptTargets, PlannedAttempt, plan_attempt
from .proposed_attempts import MAX_OUTSIDE_SHARE, attempts_at, saved_outside
from .segment_decisions import Segmentation

BUDGET_POLICIES = "dots_with_no_batch_dims_saveable", "dots_saveable"
"""The policies of `jax.checkpoint` with which a search for a budget tries attempts again. They recompute no matrix
products."""


@dataclass(frozen=True, kw_only=True)
class ChosenAttempt:
    """The choice among the attempts at a step.

    Attributes:
        forecast: The forecast with which the attempts were scored.
        before: The peaks of the unchanged step.
        chosen: The best attempt.
        tried: All scored attempts, including the best one.
        refused: The veto against the best attempt: the reason that the unchanged step is better. None if there is no
            veto.
        is_free: Whether the best attempt has copies, and no mark forces any of them.
        segment_count: The number of segments that the user requests; 0 without a request.
    """

    forecast: Forecast
    before: Peaks
    chosen: ScoredAttempt
    tried: tuple[ScoredAttempt, ...]
    refused: str | None
    is_free: bool = False
    segment_count: int = 0

    def remarks(self, function: FuncOp) -> Iterator[Remark]:
        """Yield remarks on a choice without a veto, located at the function of the step: on the attempt, and on values
        outside all segments."""
        attempt = self.chosen.planned.attempt
        if replace(attempt, chain=False) != DEFAULT_ATTEMPT:
            reason = f"{attempt}, chosen from {counted(len(self.tried), 'attempt')}"
            if not self.chosen.planned.plan.copies:
                # Attempts with copies are preferred, so the plans of all attempts are empty.
                reason = (
                    f"none of the tried divisions into segments frees memory (the first is {attempt}); to "
                    f"recompute an operation anyway, give it the attribute {Names.RECOMPUTE} = true"
                )
            yield Remark(function, reason, RemarkKind.ANALYSIS, Topic.CHOICE)
        cuts = attempt.segmentation.cuts
        if self.segment_count and cuts is not None and cuts.segment_count < self.segment_count:
            possible = counted(cuts.segment_count, "segment")
            reason = f"segment-count={self.segment_count} is not possible: the step has the structure of {possible}"
            yield Remark(function, reason, topic=Topic.NO_EFFECT)
        outside, saved = _saved_outside(self.chosen.planned)
        if outside > MAX_OUTSIDE_SHARE * saved:
            reason = (
                f"{format_bytes(outside)} of the {format_bytes(saved)} saved for the backward pass lie outside "
                "every segment: name more of the model (jax.named_scope), or do not select segments"
            )
            amounts = ("outside_bytes", outside), ("saved_bytes", saved)
            yield Remark(function, reason, RemarkKind.ANALYSIS, amounts=amounts)


def _saved_outside(planned: PlannedAttempt) -> tuple[int, int]:
    """Return the bytes that are saved for the backward pass outside all segments, and the bytes that are saved in
    total. Both are 0 if there are no segments."""
    step, members = planned.decided.step, planned.decided.resolved.members
    inside = {step.position(op) for operations in members.values() for op in operations}
    return saved_outside(step, inside) if inside else (0, 0)


def choose_for(function: FuncOp, step: Step, options: RecomputeOptions) -> ChosenAttempt:
    """Choose an attempt as `choose` does, with the forecast for the function of the step."""
    return choose(step, options, Forecast.of(function, step, options.emission))


def choose(step: Step, options: RecomputeOptions, forecast: Forecast) -> ChosenAttempt:
    """Plan and forecast at most `options.attempts` distinct attempts, and choose the best one.

    If the best attempt has cuts, it is also tried with other ways of copying its segments. The first attempt and the
    best one are also tried with chained copy groups if `tries_chained_groups` returns true.

    Returns:
        The choice. Its `refused` is set if the unchanged step is better.

    Raises:
        BadSelection: If the selection does not apply to the step.
    """
    attempts = _StepAttempts(step, options, forecast)
    before = forecast.without_copies()
    keeps_barriers = forecast.keeps_barriers
    scored = [attempts.score(planned) for planned in islice(attempts.distinct_attempts(), options.attempts)]
    if tries_chained_groups(scored[0], keeps_barriers):
        attempts.chained(scored[0], scored)
    best = best_attempt(scored, before, keeps_barriers)
    if options.attempts > 1 and (variants := attempts.score_copying_variants(best)):
        scored += variants
        best = best_attempt(scored, before, keeps_barriers)
    if tries_chained_groups(best, keeps_barriers):
        best = steadier_attempt(best, attempts.chained(best, scored), before, keeps_barriers)
    has_forced_copies = any(map(is_forced, step.phases.order.operations))
    is_free = bool(best.planned.plan.copies) and not has_forced_copies
    veto = why_refused(best, before, keeps_barriers) if is_free else None
    return ChosenAttempt(
        forecast=forecast,
        before=before,
        chosen=best,
        tried=tuple(scored),
        refused=veto,
        is_free=is_free,
        segment_count=options.selection.segment_count,
    )


def policy_attempts(
    step: Step, options: RecomputeOptions, forecast: Forecast, tried: Sequence[ScoredAttempt]
) -> Iterator[ScoredAttempt]:
    """Yield variants of two attempts, the one with the lowest peak and the one with the least work, under each policy
    of `BUDGET_POLICIES`. The variants need more memory and less work than the two attempts. Yield nothing if the user
    has chosen the values to save.

    Args:
        tried: The attempts at the step that `choose` has scored.
    """
    selection, copying = options.selection, [scored for scored in tried if scored.planned.plan.copies]
    chosen_by_user = selection.policy != Selection.policy or isinstance(selection, SelectionByFunction)
    if chosen_by_user or selection.save or not copying:
        return
    attempts = _StepAttempts(step, options, forecast)
    plans = {scored.planned.plan for scored in tried}
    smallest = min(copying, key=lambda scored: scored.peaks.of_target(forecast.keeps_barriers))
    cheapest = min(copying, key=lambda scored: scored.planned.plan.extra_flops)
    for scored in (smallest,) if cheapest is smallest else (smallest, cheapest):
        for policy in BUDGET_POLICIES:
            planned = attempts.with_policy(scored.planned.attempt, policy)
            if planned.plan.copies and planned.plan not in plans:
                plans.add(planned.plan)
                yield attempts.score(planned)


@dataclass
class _StepAttempts:
    """A factory that plans and scores the attempts at one step. Attempts with the same segments share their decisions
    and targets."""

    step: Step
    options: RecomputeOptions
    forecast: Forecast
    _targets: dict[tuple[Segmentation, str], AttemptTargets] = field(
        default_factory=dict[tuple[Segmentation, str], AttemptTargets]
    )

    @cached_property
    def named(self) -> Mapping[Operation, str] | None:
        return named_segments(self.step.phases, self.options.selection)

    def score(self, planned: PlannedAttempt) -> ScoredAttempt:
        """Forecast the peaks of a planned attempt.

        All peaks except the one under the XLA:CPU model are computed immediately rather than on first access, so that
        the graph of the attempt can be released before the next attempt is planned.
        """
        peaks = self.forecast.of_plan(planned.plan, planned.segments)
        return ScoredAttempt(planned, peaks.with_orders())

    def chained(self, attempt: ScoredAttempt, scored: list[ScoredAttempt]) -> ScoredAttempt:
        """Return the attempt with chained copy groups, after adding it to `scored` if it is not in that list yet."""
        chained = replace(attempt.planned.attempt, chain=True)
        for other in scored:
            if other.planned.attempt == chained:
                return other
        scored.append(self.score(self._plan(chained)))
        return scored[-1]

    def score_copying_variants(self, scored: ScoredAttempt) -> list[ScoredAttempt]:
        """Score the attempts that copy the same segments in different ways, if their plans differ."""
        planned = [self._plan(attempt) for attempt in scored.planned.attempt.copying_variants()]
        return [self.score(variant) for variant in planned if variant.plan != scored.planned.plan]

    def with_policy(self, attempt: Attempt, policy: str) -> PlannedAttempt:
        """Plan the attempt with a different policy."""
        return self._plan(replace(attempt, policy=policy))

    def distinct_attempts(self) -> Iterator[PlannedAttempt]:
        """Yield the attempts whose plans differ. The first attempt is included even if it copies nothing, because of
        its remarks."""
        seen = set[Plan]()
        for planned in self._plan_all():
            if planned.plan not in seen and (planned.plan.copies or not seen):
                seen.add(planned.plan)
                yield planned

    def _plan_all(self) -> Iterator[PlannedAttempt]:
        """Yield each attempt with its plan. If the plan that repeats the copies in each backward pass is different,
        also yield the attempt with that plan."""
        for attempt in attempts_at(self.step, self.options.selection, self.named):
            planned = self._plan(attempt)
            yield planned
            if (repeated := planned.in_each_pass()).plan is not planned.plan:
                yield repeated

    def _plan(self, attempt: Attempt) -> PlannedAttempt:
        """Plan an attempt. Raises `BadSelection` if the selection does not apply to the step."""
        selection, key = self.options.selection, (attempt.segmentation, attempt.policy)
        if attempt.policy:
            selection = replace(selection, policy=attempt.policy)
        if key not in self._targets:
            named = None if selection.segment_count else self.named
            self._targets[key] = AttemptTargets.of(self.step, selection, attempt.segmentation, named)
        return plan_attempt(self.step, selection, attempt, self._targets[key], self.options.copies)
