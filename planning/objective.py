"""The objective of planning: the quantities to minimize, and the thresholds for applying a plan.

Without a budget, the plan with the lowest peak is chosen (`search/choice/best_attempt.py`). This plan is applied only
if it reduces the peak enough. It must also reduce the peak under an executor that starts operations as soon as they are
ready. With a budget in bytes, the cost of the copies is minimized, among the plans whose peak is within the budget
(`solvers/`).

The peak counts temporaries in program order (`liveness.py`), and the cost is the sum of `Graph.cost` over all copies.
This module defines the thresholds that several methods share; a threshold of a single method is defined in its module.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_EAGER_FACTOR = 1.10
"""Multiple of the peak in program order up to which the peak of the eager schedule (`orders.py`) is acceptable. Above
it, copy groups are chained: each group also waits for the gradient operation before it."""

MIN_SAVED_SHARE = 0.01
"""Share by which an automatic choice must reduce the peak to be applied, because barriers and copies have a cost. A
rise of the peak by a smaller share does not rule out a choice."""


MAX_WORK_FACTOR = 1.5
"""Multiple of the work of an alternative above which a choice must reduce memory in proportion to its work. Recomputing
the whole forward pass once takes a factor of about 1.33, which is always accepted. Larger factors occur where the same
values are copied for several backward passes, as in steps with second derivatives."""


def is_too_much_work(work: int, peaks: Iterable[int], other_work: int, other_peaks: Iterable[int]) -> bool:
    """Return whether a choice takes much more work than an alternative, out of proportion to its reduction of memory.

    Args:
        work: The cost of the step with the choice, such as its FLOPs.
        peaks: The peaks with the choice, in bytes, one for each memory model. A reduction in one model suffices.
        other_work: The cost of the step with the alternative, in the same unit.
        other_peaks: The peaks with the alternative, in bytes, in the same order.
    """
    return work > MAX_WORK_FACTOR * other_work and all(
        work * peak > other_work * other for peak, other in zip(peaks, other_peaks, strict=True)
    )


def is_worth_it(before: int, after: int) -> bool:
    """Return whether a choice is worth applying: it reduces the peak by more than `MIN_SAVED_SHARE`.

    Args:
        before: The peak without the choice, in bytes.
        after: The peak with the choice, in bytes.
    """
    return after < before * (1 - MIN_SAVED_SHARE)


def raises_peak(before: int, after: int) -> bool:
    """Return whether a choice raises the peak by more than `MIN_SAVED_SHARE`, which rules it out.

    Args:
        before: The peak without the choice, in bytes.
        after: The peak with the choice, in bytes.
    """
    return after > before * (1 + MIN_SAVED_SHARE)
