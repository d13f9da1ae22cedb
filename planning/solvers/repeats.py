"""Find the repeated blocks of a step, and the correspondence between their operations.

A layer that is repeated k times is a run of k periods in the forward pass. The periods have operations of the same
costs and sizes, in the same order. In the backward pass, the repeated layer is a run of about k periods, the last layer
first. Use-def edges match the periods of the two runs. The blocks need not be isomorphic, because any set of copies
gives a valid program, which is evaluated.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from .problem import Ints, Problem

NOT_REPEATED = -1
"""The entry in `block` and in `offset` for an operation outside blocks."""
MIN_BLOCKS = 3
"""Minimum number of blocks of a run. Two equal sequences are often a coincidence."""
MAX_PERIOD = 4096
"""Maximum number of operations that a block has in the forward pass, and in the backward pass. The search for a run
takes time proportional to it; longer blocks are not recognized."""


@dataclass(frozen=True, eq=False)
class Repeats:
    """The repeated blocks of a step.

    Attributes:
        block: For each operation, the index of its block, counted from the first layer, or `NOT_REPEATED`.
        offset: For each operation, its index within the block, or `NOT_REPEATED`.
        count: The number of blocks.
    """

    block: Ints
    offset: Ints
    count: int

    def counterpart(self, op: int, by: int) -> int | None:
        """Return the operation at the same index in the block that is `by` blocks later; None if there is none."""
        return self._operation_at.get((int(self.offset[op]), int(self.block[op]) + by)) if self.is_inside(op) else None

    def is_inside(self, op: int) -> bool:
        """Return whether the operation is in a block."""
        return op < len(self.block) and self.offset[op] != NOT_REPEATED

    @cached_property
    def _operation_at(self) -> dict[tuple[int, int], int]:
        return {
            (int(self.offset[op]), int(self.block[op])): int(op) for op in np.flatnonzero(self.offset != NOT_REPEATED)
        }


@dataclass(frozen=True)
class RepeatedRun:
    """A run of `length` operations from `start` on that repeats with a period: each operation after the first period
    equals the one `period` operations before it. The last period may be incomplete."""

    start: int
    period: int
    length: int

    @property
    def operations(self) -> range:
        """The operations of the run."""
        return range(self.start, self.start + self.length)


# One cache entry is enough: all budgets of a problem are searched before the next problem.
@lru_cache(maxsize=1)
def repeats(problem: Problem) -> Repeats | None:
    """Return the repeated blocks of a step; None if no repeated blocks make up most of the step."""
    signatures = _signatures(problem)
    first = _first_backward(problem)
    forward, backward = longest_run(signatures[:first]), longest_run(signatures[first:])
    if forward is None or backward is None:
        return None
    backward = RepeatedRun(backward.start + first, backward.period, backward.length)
    last = _matching_period(problem, forward, backward)
    if last is None:
        return None
    block, offset = np.full(len(problem), NOT_REPEATED), np.full(len(problem), NOT_REPEATED)
    for op in forward.operations:
        block[op], offset[op] = divmod(op - forward.start, forward.period)
    for op in backward.operations:
        backward_block, index = divmod(op - backward.start, backward.period)
        block[op], offset[op] = last - backward_block, forward.period + index
    inside = offset != NOT_REPEATED
    block[inside] -= block[inside].min()
    return Repeats(block, offset, int(block.max()) + 1)


def longest_run(signatures: Ints) -> RepeatedRun | None:
    """Return the longest run of a sequence; None if it covers less than half of the sequence. Among runs of nearly
    equal length, the one with the shortest period is returned."""
    run = _longest_run(signatures)
    return run if run is not None and 2 * run.length >= len(signatures) else None


def runs_in(signatures: Ints, start: int = 0) -> list[RepeatedRun]:
    """Return disjoint runs of a sequence, in order: the longest run, and recursively the runs in the parts before and
    after it."""
    run = _longest_run(signatures)
    if run is None:
        return []
    end = run.start + run.length
    shifted = replace(run, start=start + run.start)
    return [*runs_in(signatures[: run.start], start), shifted, *runs_in(signatures[end:], start + end)]


def _longest_run(signatures: Ints) -> RepeatedRun | None:
    periods = range(1, min(len(signatures) // MIN_BLOCKS, MAX_PERIOD) + 1)
    runs = [run for period in periods if (run := _longest_run_of_period(signatures, period)) is not None]
    most = max((run.length for run in runs), default=0)
    return next((run for run in runs if run.length + run.period > most), None)


def _longest_run_of_period(signatures: Ints, period: int) -> RepeatedRun | None:
    """Return the longest run with this period; None if the run has too few blocks."""
    same = np.concatenate([[0], signatures[:-period] == signatures[period:], [0]]).astype(np.int8)
    starts, ends = np.flatnonzero(np.diff(same) == 1), np.flatnonzero(np.diff(same) == -1)
    if not len(starts):
        return None
    at = int(np.argmax(ends - starts))
    length = int(ends[at] - starts[at]) + period
    return RepeatedRun(int(starts[at]), period, length) if length >= MIN_BLOCKS * period else None


def _signatures(problem: Problem) -> Ints:
    """Return a signature of each operation. Two operations have the same signature if their costs and all their sizes
    are equal, and both or neither of them may be rerun."""
    numbers = dict[tuple[object, ...], int]()
    sizes = problem.storage_bytes.tolist()
    signatures = list[int]()
    for op in range(len(problem)):
        read = sorted(sizes[v] for v in problem.operands_of(op))
        result_bytes = [sizes[v] for v in problem.results_of(op)]
        facts = (
            int(problem.costs[op]),
            int(problem.inner_bytes[op]),
            int(problem.may_run_again[op]),
            tuple(read),
            tuple(result_bytes),
        )
        signatures.append(numbers.setdefault(facts, len(numbers)))
    return np.array(signatures, np.int64)


def _first_backward(problem: Problem) -> int:
    backward = np.flatnonzero(problem.is_backward)
    return int(backward[0]) if len(backward) else len(problem)


def _matching_period(problem: Problem, forward: RepeatedRun, backward: RepeatedRun) -> int | None:
    """Return the index of the forward period that belongs to the same block as the first backward period. In the best
    match, the operations of backward periods read the most results of their forward periods."""
    votes = Counter[int]()
    for op in backward.operations:
        for v in problem.operands_of(op):
            if (maker := int(problem.makers[v])) in forward.operations:
                votes[(op - backward.start) // backward.period + (maker - forward.start) // forward.period] += 1
    return votes.most_common(1)[0][0] if votes else None
