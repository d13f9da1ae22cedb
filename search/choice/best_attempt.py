"""The order of preference among the scored attempts at a step.

    best_attempt          the order of preference, criterion by criterion
    tries_chained_groups  whether an attempt is also tried with chained copy groups
    steadier_attempt      the choice between the best attempt and the same attempt with chained copy groups
    why_refused           the veto against an attempt

`choose.py` makes and scores the attempts and calls these functions. The best attempt may still be worse than the
unchanged step. `why_refused` checks this before the choice is applied, and `why_worse` in `vetoes.py` afterwards.

Named segments have the highest preference, followed by repeated blocks of the program. Segments that are derived only
from the graph's structure (*by structure*) have the lowest preference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from ...analysis.forecasts.peaks import Peaks
from ...planning.by_segment.by_structure import CutMethod
from ...planning.objective import is_too_much_work, raises_peak
from .planned_attempts import PlannedAttempt
from .proposed_attempts import MANY_OPERATIONS
from .vetoes import why_peak_rises, why_too_much_work, why_worse

EQUAL_PEAK_FACTOR = 1.02
"""If the peaks of two attempts differ by at most this factor, the XLA:CPU model cannot rank the attempts."""
HIGH_PEAK_FACTOR = 1.3
"""In a step with at least `MANY_OPERATIONS` operations, an attempt is not evaluated under the XLA:CPU model if its
peak in program order exceeds the lowest one at its level of trust by more than this factor."""
HIGH_PEAK_FACTOR_OF_LEVELS = 1.6
"""As `HIGH_PEAK_FACTOR`, but relative to the lowest peak in program order at any level of trust. Beyond this factor,
more trusted segments win only if their peak under the XLA:CPU model is lower by at least 12 % (`MAX_RATIO_TO_NAMED`).
"""
MAX_RATIO_TO_NAMED = 0.8
"""Segments by structure replace named segments if a product is below this limit: the squared ratio of their peaks under
the XLA:CPU model, times the ratio of their peaks in program order. The reason is that the model errs by about 7 %
between programs that differ so much. On 32 steps, this rule is on average as good as trusting the model, and much
better in the worst case."""
MAX_RATIO_TO_BLOCKS = 0.88
"""As `MAX_RATIO_TO_NAMED`, but for segments by structure that replace repeated blocks without names."""
TRUST_LEVELS: Sequence[tuple[Collection[CutMethod | None], float]] = (
    ((None,), MAX_RATIO_TO_NAMED),
    ((CutMethod.BLOCKS,), MAX_RATIO_TO_BLOCKS),
    ((CutMethod.STRUCTURE, CutMethod.WHOLE), 1.0),
)
"""The methods of each level of trust, the most trusted level first, with the limit below which a level of less trust
replaces it. None stands for named segments. No level replaces the last one."""


@dataclass(frozen=True)
class ScoredAttempt:
    """A planned attempt with its forecast peaks."""

    planned: PlannedAttempt
    peaks: Peaks

    @property
    def cut_method(self) -> CutMethod | None:
        """The method that divided the step into segments; None for named segments."""
        return self.planned.attempt.kind.cut_method

    @property
    def extra_work(self) -> int:
        """The cost of the copies, in the unit of the options: FLOPs by default."""
        return self.planned.plan.extra_cost(self.planned.decided.step.graph.cost)

    @property
    def is_undivided(self) -> bool:
        """Whether the whole forward pass is one segment."""
        return self.cut_method is CutMethod.WHOLE


def best_attempt(scored: Sequence[ScoredAttempt], before: Peaks, keeps_barriers: bool) -> ScoredAttempt:
    """Select the best attempt, by trust in its segments and then by memory.

    Each criterion restricts the choice to the attempts that meet it. A criterion is skipped if no attempt meets it
    among those that earlier criteria leave. The criteria are, in this order:

    1. The attempt has copies.
    2. In a large step, its peaks that are cheap to compute are low enough to win (`_contenders`).*
    3. It improves on the unchanged step (`why_worse` in `vetoes.py`).
    4. It does not raise the peak of the unchanged step under the XLA:CPU model.*
    5. It does not take too much work for its reduction of memory, compared with the unchanged step and with each
       remaining attempt (`is_too_much_work` in `planning/objective.py`).
    6. Its kind of segments is the most trusted one. A less trusted kind replaces a more trusted one only if it reduces
       memory much more (`_select_by_trust`).
    7. Its peak is the lowest one, up to `EQUAL_PEAK_FACTOR`.
    8. Its peak in program order is the lowest one, up to `EQUAL_PEAK_FACTOR`.
    9. It comes first.

    Criteria with an asterisk apply only if the target keeps barriers.

    Args:
        scored: The attempts, the most promising ones first; at least one.
        before: The peaks of the unchanged step.
        keeps_barriers: Whether the target keeps the barriers that enforce the order of copies. In this case, peaks are
            computed under the XLA:CPU model.
    """
    if len(scored) == 1:
        return scored[0]

    def size(attempt: ScoredAttempt) -> int:
        return attempt.peaks.of_target(keeps_barriers)

    def in_order(attempt: ScoredAttempt) -> int:
        return attempt.peaks.in_order

    remaining = [attempt for attempt in scored if attempt.planned.plan.copies] or scored
    if keeps_barriers:
        remaining = _contenders(remaining, before)
    remaining = [
        attempt for attempt in remaining if why_worse(before, attempt.peaks, keeps_barriers) is None
    ] or remaining
    if keeps_barriers:
        remaining = [attempt for attempt in remaining if not raises_peak(before.xla, attempt.peaks.xla)] or remaining
    remaining = _without_too_much_work(remaining, before, keeps_barriers) or remaining
    remaining = _select_by_trust(remaining, size)
    return _nearly_smallest(_nearly_smallest(remaining, size), in_order)[0]


def tries_chained_groups(scored: ScoredAttempt, keeps_barriers: bool) -> bool:
    """Return whether an attempt is also tried with chained copy groups. This is the case if an eager executor would
    need much more memory than the program order, the groups are not chained yet, and the target keeps the barriers that
    chain them."""
    return keeps_barriers and not scored.peaks.is_steady and not scored.planned.attempt.chain


def steadier_attempt(best: ScoredAttempt, chained: ScoredAttempt, before: Peaks, keeps_barriers: bool) -> ScoredAttempt:
    """Select between the best attempt and the same attempt with chained copy groups. If only one of the two is refused
    (`why_refused`), return the other attempt. Otherwise, return the attempt that needs less memory under an eager
    executor; in a tie, return the best attempt."""
    return min(
        best,
        chained,
        key=lambda attempt: (why_refused(attempt, before, keeps_barriers) is not None, attempt.peaks.eager),
    )


def why_refused(attempt: ScoredAttempt, before: Peaks, keeps_barriers: bool) -> str | None:
    """Return the reason that the unchanged step is better than the attempt; None if the attempt is better.

    `before`: the peaks of the unchanged step.
    """
    work = sum(attempt.planned.decided.step.graph.cost)
    return why_worse(before, attempt.peaks, keeps_barriers) or why_too_much_work(
        work, attempt.extra_work, before.to_compare(keeps_barriers), attempt.peaks.to_compare(keeps_barriers)
    )


def _contenders(scored: Sequence[ScoredAttempt], before: Peaks) -> Sequence[ScoredAttempt]:
    """Return the attempts that may have the lowest peak under the XLA:CPU model, selected by peaks that are cheap to
    compute.

    For a step with at least `MANY_OPERATIONS` operations, an attempt is excluded if it raises a peak, or if its peak in
    program order is too high: more than `HIGH_PEAK_FACTOR` times the lowest one at its level of trust, or more than
    `HIGH_PEAK_FACTOR_OF_LEVELS` times the lowest one. The attempt with a single segment for the whole step is never
    excluded, because only the model shows how much memory it frees. For smaller steps the model takes little time, so
    no attempt is excluded.
    """
    if len(scored[0].planned.decided.step.graph) < MANY_OPERATIONS:
        return scored
    allowed = [attempt for attempt in scored if why_peak_rises(before, attempt.peaks, True) is None] or scored
    most = HIGH_PEAK_FACTOR_OF_LEVELS * min(attempt.peaks.in_order for attempt in allowed)
    # Attempts are identified by `id`, because comparing plans is slow.
    few = set[int]()
    for of_level, _ in _by_trust(allowed):
        lowest = min(attempt.peaks.in_order for attempt in of_level)
        few |= {id(item) for item in of_level if item.peaks.in_order <= min(most, HIGH_PEAK_FACTOR * lowest)}
    return [attempt for attempt in scored if id(attempt) in few or attempt.is_undivided]


def _without_too_much_work(scored: Sequence[ScoredAttempt], before: Peaks, keeps_barriers: bool) -> list[ScoredAttempt]:
    """Return the attempts that do not take too much work, compared with the unchanged step and with one another.
    `before`: the peaks of the unchanged step."""
    work = sum(scored[0].planned.decided.step.graph.cost)
    unchanged = work, before.to_compare(keeps_barriers)
    costs = [(work + attempt.extra_work, attempt.peaks.to_compare(keeps_barriers)) for attempt in scored]
    return [
        attempt
        for attempt, cost in zip(scored, costs, strict=True)
        if not any(is_too_much_work(*cost, *other) for other in (unchanged, *costs))
    ]


def _select_by_trust(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> Sequence[ScoredAttempt]:
    """Restrict the choice to named segments if there are any, otherwise to repeated blocks, otherwise to segments by
    structure. A less trusted kind replaces a more trusted one if its combined peak is lower by more than the error of
    the models.
    """
    believed, max_ratio = list[ScoredAttempt](), 1.0
    for of_level, next_max_ratio in _by_trust(scored):
        if not believed or _combined_peak(of_level, size) < max_ratio * _combined_peak(believed, size):
            believed, max_ratio = of_level, next_max_ratio
    return believed


def _by_trust(scored: Sequence[ScoredAttempt]) -> Iterator[tuple[Sequence[ScoredAttempt], float]]:
    """Yield the attempts of each level of trust that has attempts, the most trusted level first. The number with each
    level is a factor on its combined peak: a less trusted level replaces it only if its own combined peak is lower than
    the product."""
    for attempt in scored:
        has_level = any(attempt.cut_method in methods for methods, _ in TRUST_LEVELS)
        assert has_level, f"{attempt.cut_method} belongs to no level of trust; add it to TRUST_LEVELS"
    for methods, max_ratio in TRUST_LEVELS:
        if of_level := [attempt for attempt in scored if attempt.cut_method in methods]:
            yield of_level, max_ratio


def _combined_peak(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> int:
    """Return the square of the lowest peak under the XLA:CPU model, times the lowest peak in program order."""
    return min(map(size, scored)) ** 2 * min(attempt.peaks.in_order for attempt in scored)


def _nearly_smallest(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> list[ScoredAttempt]:
    """Return the attempts whose size is at most `EQUAL_PEAK_FACTOR` times the smallest size."""
    smallest = min(map(size, scored))
    return [attempt for attempt in scored if size(attempt) <= EQUAL_PEAK_FACTOR * smallest]
