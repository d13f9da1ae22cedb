"""Bound the peak of any plan from below: by the operands and results of an operation, and the pinned storages.

A storage is pinned from its operation to the last use that no copy can serve. These are all uses if its operation must
not run twice, and otherwise the uses before the first stage in which copies may run. First executions follow the given
order, so that the bound holds for any set of copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...support.units import readable_bytes
from .problem import Ints, Problem


@dataclass(frozen=True)
class WorkingSet:
    """A set of storages that is live in any plan.

    Attributes:
        bytes: The live bytes while the operation runs, with its inner bytes, or the bytes of the outputs.
        operation: The operation; None for the outputs.
        values: The live storages, the largest first.
    """

    bytes: int
    operation: int | None
    values: tuple[int, ...]


def largest_working_set(problem: Problem) -> WorkingSet:
    """Return the working set with the most bytes, or the outputs, which are all live at the end, if they have more. No
    plan peaks below it."""
    lasts = last_pinned_operations(problem)
    needed = _needed_bytes(problem, lasts)
    op = int(needed.argmax())
    outputs = [v for v in range(len(problem.sizes)) if problem.output[v]]
    output_bytes = sum(int(problem.sizes[v]) for v in outputs)
    if output_bytes > int(needed[op]):
        return WorkingSet(output_bytes, None, _by_size(problem, outputs))
    pinned = np.flatnonzero((problem.maker <= op) & (lasts >= op)).tolist()
    return WorkingSet(int(needed[op]), op, _by_size(problem, {*pinned, *problem.reads_of(op), *problem.makes_of(op)}))


def last_pinned_operations(problem: Problem) -> Ints:
    """Return for each storage the last operation up to which it is pinned."""
    lasts = problem.maker.copy()
    first_stage = 0 if problem.everywhere else problem.earliest
    may_read_copy = (problem.again[problem.maker[problem.reads]] != 0) & (problem.reader >= first_stage)
    np.maximum.at(lasts, problem.reads[~may_read_copy], problem.reader[~may_read_copy])
    lasts[(problem.output != 0) & (problem.again[problem.maker] == 0)] = len(problem) - 1
    return lasts


def _needed_bytes(problem: Problem, lasts: Ints) -> Ints:
    """Return for each operation the bytes of pinned storages, of its other operands, and its inner bytes."""
    change = np.zeros(len(problem) + 1, dtype=np.int64)
    np.add.at(change, problem.maker, problem.sizes)
    np.add.at(change, lasts + 1, -problem.sizes)
    needed = np.cumsum(change)[: len(problem)] + problem.inner
    is_unpinned = lasts[problem.reads] < problem.reader
    np.add.at(needed, problem.reader[is_unpinned], problem.sizes[problem.reads[is_unpinned]])
    return needed


def _by_size(problem: Problem, values: list[int] | set[int]) -> tuple[int, ...]:
    return tuple(sorted(values, key=lambda v: (-int(problem.sizes[v]), v)))


def describe_working_set(problem: Problem, working_set: WorkingSet, most: int = 5) -> tuple[str, ...]:
    """Name the operation and its `most` largest values, for a message."""
    named = [f"{problem.value_names[v]}: {readable_bytes(int(problem.sizes[v]))}" for v in working_set.values[:most]]
    if len(working_set.values) > most:
        named.append(f"… and {len(working_set.values) - most} more")
    if working_set.operation is None:
        return ("the outputs, which are all live at the end", *named)
    return (f"operation {problem.labels[working_set.operation]} ({problem.names[working_set.operation]})", *named)
