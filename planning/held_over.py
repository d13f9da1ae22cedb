"""A bound for the peak that looks at two operations: what one reads was there before the other ran, or was made since.

Where operation t reads a value v that may be made again, and s runs before t, the copy of v that t reads was alive
while s ran, beside all that s needs; or the operation m that makes v ran between s and t, beside what is alive all that
time: what was made until s, is still read at t or later, and never runs again. The peak is at least the smaller of the
two, for every such s, t and v. First executions follow the given order, and any copies are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .solvers.problem import Problem
from .solvers.working_set import pinned_until

WINDOW = 64
"""So many operations in front of t are tried as s."""


@dataclass(frozen=True)
class HeldOver:
    """No plan peaks below `bytes`: while `before` runs the `value` is there too, or `maker` runs again between
    `before` and `reader`. None of them where nothing is proved by this."""

    bytes: int
    before: int = -1
    reader: int = -1
    value: int = -1

    def said(self, problem: Problem) -> str:
        """In words, with the operations."""
        maker = int(problem.maker[self.value])
        labels = [f"{problem.labels[op]} ({problem.names[op]})" for op in (self.reader, maker, self.before)]
        return (
            f"operation {labels[0]} reads what {labels[1]} makes, which is held while {labels[2]} runs, or made "
            "again after it"
        )


def held_over(problem: Problem) -> HeldOver:
    """The largest such bound; 0 bytes where there is none."""
    lasts = pinned_until(problem)
    alive = np.zeros(len(problem) + 1, dtype=np.int64)
    np.add.at(alive, problem.maker, problem.sizes)
    np.add.at(alive, lasts + 1, -problem.sizes)
    pinned = np.cumsum(alive)[: len(problem)]
    needed = [int(pinned[op]) + _besides(problem, op, lasts, op, op) for op in range(len(problem))]
    best = HeldOver(0)
    for t in range(problem.earliest + 1, len(problem)):
        loose = [v for v in problem.reads_of(t) if lasts[v] < t]
        # The most that any s could prove.
        if not loose or t == 0:
            continue
        until = np.flatnonzero((problem.maker < t) & (lasts >= t))
        makers, held = problem.maker[until], np.concatenate([[0], np.cumsum(problem.sizes[until])])
        for v in loose:
            for s in range(t - 1, max(problem.earliest, int(problem.maker[v]) + 1, t - WINDOW) - 1, -1):
                there = needed[s] + (0 if _is_there(problem, v, s, lasts) else int(problem.sizes[v]))
                if there <= best.bytes:
                    continue
                over = int(held[np.searchsorted(makers, s, side="right")])
                made = over + _besides(problem, int(problem.maker[v]), lasts, s, t)
                if min(there, made) > best.bytes:
                    best = HeldOver(min(there, made), s, t, v)
    return best


def _besides(problem: Problem, op: int, lasts: np.ndarray, first: int, last: int) -> int:
    """What the operation needs while it runs, without what is alive from `first` to `last` anyway."""
    values = {*problem.reads_of(op), *problem.makes_of(op)}
    loose = (v for v in values if not (problem.maker[v] <= first and lasts[v] >= last))
    return sum(int(problem.sizes[v]) for v in loose) + int(problem.inner[op])


def _is_there(problem: Problem, value: int, op: int, lasts: np.ndarray) -> bool:
    """Whether it is counted among what the operation needs."""
    return lasts[value] >= op or value in problem.reads_of(op)
