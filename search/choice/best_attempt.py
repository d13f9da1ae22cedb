"""Select the best of the scored attempts at a step: by trust in their segments, then by the lowest peak.

Named segments are trusted most, then repeated blocks of the program, and least the segments that are derived only from
the structure of the graph (*by structure*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...analysis.memory.peaks import Peaks
from ...planning.by_segment.by_structure import CutMethod
from ...planning.objective import raises_peak
from .attempts import MANY_OPERATIONS
from .planned_attempts import PlannedAttempt
from .vetoes import why_peak_rises, why_worse

EQUAL_PEAK_FACTOR = 1.02
"""If the peaks of two attempts differ by at most this factor, the model of XLA:CPU cannot rank the attempts."""
HIGH_PEAK_FACTOR = 1.3
"""In a step with at least `MANY_OPERATIONS` operations, an attempt is not evaluated under the model of XLA:CPU if its
peak in program order exceeds the lowest one by more than this factor. Among 89 choices for such steps in the examples
and benchmarks, this limit changes none."""
STRUCTURE_GAINS = 0.8
"""Segments by structure replace named segments if a product is below this limit: the squared ratio of their peaks under
the model of XLA:CPU, times the ratio of their peaks in program order. The reason is that the model errs by about 7 %
between programs that differ so much. On 32 steps, this rule is on average as good as trusting the model, and much
better in the worst case."""
BLOCK_GAINS = 0.88
"""As `STRUCTURE_GAINS`, but for segments by structure that replace repeated blocks without names."""


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
    def is_undivided(self) -> bool:
        """Whether the whole forward pass is one segment."""
        return self.planned.attempt.kind.segment_count == 1


def best_attempt(scored: Sequence[ScoredAttempt], before: Peaks, keeps_barriers: bool) -> ScoredAttempt:
    """Select an attempt by trust, then by memory: among the attempts with the most trusted kind of segments, the one
    with the lowest peak.

    Attempts with copies that improve on the unchanged step are preferred. A less trusted kind replaces a more trusted
    one only if it saves much more (`_select_by_trust`). Ties within `EQUAL_PEAK_FACTOR` go to the lowest peak in
    program order, then to the first attempt.

    Args:
        before: The peaks of the unchanged step.
        keeps_barriers: Whether the target keeps the barriers that enforce the order of copies. In this case, peaks are
            those under the model of XLA:CPU.
    """
    if len(scored) == 1:
        return scored[0]

    def size(attempt: ScoredAttempt) -> int:
        return attempt.peaks.of_target(keeps_barriers)

    copying = [attempt for attempt in scored if attempt.planned.plan.copies] or scored
    if keeps_barriers:
        copying = _contenders(copying, before)
    better = [attempt for attempt in copying if why_worse(before, attempt.peaks, keeps_barriers) is None] or copying
    better = [
        attempt for attempt in better if not (keeps_barriers and _raises_xla_peak(before, attempt.peaks))
    ] or better
    return _nearly_smallest(
        _nearly_smallest(_select_by_trust(better, size), size), lambda attempt: attempt.peaks.in_order
    )[0]


def _contenders(scored: Sequence[ScoredAttempt], before: Peaks) -> Sequence[ScoredAttempt]:
    """Return the attempts that may have the lowest peak under the model of XLA:CPU, selected by peaks that are cheap to
    compute.

    For a step with at least `MANY_OPERATIONS` operations, an attempt is excluded if it raises a peak, or if its peak in
    program order is more than `HIGH_PEAK_FACTOR` times the lowest one. The attempt with a single segment for the whole
    step is never excluded, because only the model shows what it saves. For smaller steps the model takes little time,
    so no attempt is excluded.
    """
    if len(scored[0].planned.decided.step.graph) < MANY_OPERATIONS:
        return scored
    allowed = [attempt for attempt in scored if why_peak_rises(before, attempt.peaks, True) is None] or scored
    most = HIGH_PEAK_FACTOR * min(attempt.peaks.in_order for attempt in allowed)
    # Attempts are identified by `id`, because comparing plans is slow.
    few = {id(attempt) for attempt in allowed if attempt.peaks.in_order <= most}
    return [attempt for attempt in scored if id(attempt) in few or attempt.is_undivided]


def _select_by_trust(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> Sequence[ScoredAttempt]:
    """Restrict the choice to named segments if there are any, otherwise to repeated blocks, otherwise to segments by
    structure. A less trusted kind replaces a more trusted one if its combined peak is lower by more than the error of
    the models.
    """
    believed = list[ScoredAttempt]()
    for method in (None, *CutMethod):
        of_method = [attempt for attempt in scored if attempt.cut_method is method]
        gains = BLOCK_GAINS if believed and believed[0].cut_method is CutMethod.BLOCKS else STRUCTURE_GAINS
        if not believed or (of_method and _combined_peak(of_method, size) < gains * _combined_peak(believed, size)):
            believed = of_method
    return believed


def _combined_peak(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> int:
    """Return the square of the lowest peak under the model of XLA:CPU, times the lowest peak in program order."""
    return min(map(size, scored)) ** 2 * min(attempt.peaks.in_order for attempt in scored)


def _nearly_smallest(scored: Sequence[ScoredAttempt], size: Callable[[ScoredAttempt], int]) -> list[ScoredAttempt]:
    """Return the attempts whose size is at most `EQUAL_PEAK_FACTOR` times the smallest size."""
    smallest = min(map(size, scored))
    return [attempt for attempt in scored if size(attempt) <= EQUAL_PEAK_FACTOR * smallest]


def _raises_xla_peak(before: Peaks, after: Peaks) -> bool:
    """Return whether the attempt raises the peak of the unchanged step under the model of XLA:CPU."""
    return raises_peak(before.xla, after.xla)
