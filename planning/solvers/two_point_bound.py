"""Compute a lower bound on the peak from two operations. A value that the later operation reads was either live while
the earlier operation ran, or was computed between the two.

Let operation t read a value v that may be recomputed, and let operation s run before t. One of two cases holds:

- The instance of v that t reads was live while s ran, together with all values that s needs.
- The operation m that makes v ran between s and t. The values that are made up to s, read at t or later, and never
  recomputed were live while m ran, together with all values that m needs.

For every such s, t and v, the peak is at least the smaller of the two sums of bytes. First executions follow the given
order; any copies are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .problem import Problem
from .working_set import last_pinned_operations

MAX_DISTANCE = 64
"""The maximum distance from s to t, in operations. It keeps the time linear in the length of the step; more distant
pairs are not tried, so the bound may be lower, but it is valid."""


@dataclass(frozen=True)
class TwoPointBound:
    """A proof that no plan peaks below `bytes`. If nothing is proved, `bytes` is 0, and all other fields are -1.

    Attributes:
        bytes: The lower bound on the peak.
        before: The operation s of the module docstring, which runs first.
        reader: The operation t, which reads the value.
        value: The storage v, which is live while s runs, or whose maker is rerun between s and t.
    """

    bytes: int
    before: int = -1
    reader: int = -1
    value: int = -1

    def clause(self, problem: Problem, name: Callable[[int], str]) -> str:
        """Return a clause with the reason for the bound.

        `name`: a function that returns the name of an operation, given its index.
        """
        maker = int(problem.makers[self.value])
        return (
            f"while {name(self.before)} executes: {name(self.reader)} reads a result of {name(maker)}, and this result "
            "is either live then or recomputed later"
        )


def two_point_bound(problem: Problem) -> TwoPointBound:
    """Return the largest bound from two operations that are at most `MAX_DISTANCE` apart; a bound of 0 bytes if none
    exists.

    The names s, t and v are used as in the module docstring.
    """
    lasts = last_pinned_operations(problem)
    change = np.zeros(len(problem) + 1, dtype=np.int64)
    np.add.at(change, problem.makers, problem.storage_bytes)
    np.add.at(change, lasts + 1, -problem.storage_bytes)
    pinned = np.cumsum(change)[: len(problem)]
    needed = [int(pinned[op]) + _unpinned_bytes(problem, op, lasts, op, op) for op in range(len(problem))]
    best = TwoPointBound(0)
    for t in range(problem.earliest_stage + 1, len(problem)):
        recomputable = [v for v in problem.operands_of(t) if lasts[v] < t]
        if not recomputable:
            continue
        pinned_at_t = np.flatnonzero((problem.makers < t) & (lasts >= t))
        makers = problem.makers[pinned_at_t]
        summed = np.concatenate([[0], np.cumsum(problem.storage_bytes[pinned_at_t])])
        for v, s in _values_and_stages_before(problem, recomputable, t):
            live_at_s = needed[s] + (0 if _is_counted(problem, v, s, lasts) else int(problem.storage_bytes[v]))
            if live_at_s <= best.bytes:
                continue
            pinned_between = int(summed[np.searchsorted(makers, s, side="right")])
            recomputed_later = pinned_between + _unpinned_bytes(problem, int(problem.makers[v]), lasts, s, t)
            if min(live_at_s, recomputed_later) > best.bytes:
                best = TwoPointBound(min(live_at_s, recomputed_later), s, t, v)
    return best


def _values_and_stages_before(problem: Problem, values: Iterable[int], t: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of a value and an operation s that is at most `MAX_DISTANCE` before t. The value is computed before s
    runs. For each value, the last operation comes first."""
    for v in values:
        first = max(problem.earliest_stage, int(problem.makers[v]) + 1, t - MAX_DISTANCE)
        for s in range(t - 1, first - 1, -1):
            yield v, s


def _unpinned_bytes(problem: Problem, op: int, lasts: np.ndarray, first: int, last: int) -> int:
    """Return the bytes that the operation needs while it runs, without the values that are live from `first` to `last`
    in every schedule."""
    values = {*problem.operands_of(op), *problem.results_of(op)}
    unpinned = (v for v in values if not (problem.makers[v] <= first and lasts[v] >= last))
    return sum(int(problem.storage_bytes[v]) for v in unpinned) + int(problem.inner_bytes[op])


def _is_counted(problem: Problem, value: int, op: int, lasts: np.ndarray) -> bool:
    """Return whether the bytes that are live while the operation runs already include the value."""
    return lasts[value] >= op or value in problem.operands_of(op)
