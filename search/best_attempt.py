"""Select the best of the scored attempts at a step: by trust in their segments, then by the lowest peak."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..analysis.memory.peaks import Peaks
from ..planning.by_segment.by_structure import CutMethod
from ..planning.objective import raises_peak
from .attempts import MANY_OPERATIONS
from .planned_attempts import PlannedAttempt
from .vetoes import why_peak_rises, why_worse

AS_GOOD = 1.02
"""The model of XLA:CPU cannot rank two attempts whose peaks differ by at most this factor."""
CLEARLY_MORE = 1.3
"""The model of XLA:CPU does not evaluate an attempt at a step with `MANY_OPERATIONS` if its peak in program order
exceeds the lowest one by this factor. Among 89 choices for such steps, in the examples and benchmarks, this changes
none."""
STRUCTURE_GAINS = 0.8
"""Segments by structure replace named segments if the ratio of their peaks under the model of XLA:CPU, squared, times
the ratio in program order, is below this limit: the model errs by about 7 % between programs that differ this much. On
32 steps this is as good on average as trusting the model, and much better in the worst case."""
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
        copying = _contenders(copying, before)
    better = [attempt for attempt in copying if why_worse(before, attempt.peaks, keeps_barriers) is None] or copying
    better = [attempt for attempt in better if not (keeps_barriers and _needs_more(before, attempt.peaks))] or better
    return _nearly_smallest(_nearly_smallest(_by_trust(better, size), size), lambda attempt: attempt.peaks.in_order)[0]


def _contenders(scored: Sequence[ScoredAttempt], before: Peaks) -> Sequence[ScoredAttempt]:
    """Return the attempts that may have the lowest peak under the model of XLA:CPU, judged by peaks that are cheap to
    compute.

    For a step with `MANY_OPERATIONS`, an attempt is left out if it raises a peak, or if its peak in program order is
    more than `CLEARLY_MORE` times the lowest one. The attempt with one segment for the whole step stays, since only the
    model shows its saving. For smaller steps the model takes little time.
    """
    if len(scored[0].planned.decided.step.graph) < MANY_OPERATIONS:
        return scored
    allowed = [attempt for attempt in scored if why_peak_rises(before, attempt.peaks, True) is None] or scored
    most = CLEARLY_MORE * min(attempt.peaks.in_order for attempt in allowed)
    # Identify attempts by `id`, since comparing plans takes long.
    few = {id(attempt) for attempt in allowed if attempt.peaks.in_order <= most}
    return [attempt for attempt in scored if id(attempt) in few or attempt.is_undivided]


def _by_trust(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> Sequence[ScoredAttempt]:
    """Restrict the choice to named segments if there are any, else to repeated blocks, else to cuts by structure; a
    less trusted kind replaces a more trusted one if its gain exceeds the error of the models.

    The gain is the ratio of the peaks under the model of XLA:CPU, squared, times the ratio in program order.
    """
    believed = list[ScoredAttempt]()
    for method in (None, *CutMethod):
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
