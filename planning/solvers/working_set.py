"""Compute a lower bound on the peak of every plan, from the operands and results of an operation and the pinned
storages.

A storage is pinned from the operation that makes it to the last use that no copy can serve. If this operation must not
run twice, no copy can serve any use; otherwise no copy can serve the uses before the first stage in which copies may
run. First executions follow the given order, so the bound is valid for any set of copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...support.units import format_bytes, readable_bytes
from .problem import Ints, Problem

MOST_VALUES = 5
"""The maximum number of values that a message about a working set lists. The largest ones are listed."""


@dataclass(frozen=True)
class WorkingSet:
    """A set of storages that is live in any plan.

    Attributes:
        bytes: The live bytes while the operation runs, including its inner bytes, or the bytes of the outputs.
        operation: The operation; None for the outputs.
        values: The live storages, the largest first.
    """

    bytes: int
    operation: int | None
    values: tuple[int, ...]


def largest_working_set(problem: Problem) -> WorkingSet:
    """Return the largest working set: the working set of an operation, or the set of outputs, since all outputs are
    live at the end. The peak of any plan is at least its size in bytes."""
    lasts = last_pinned_operations(problem)
    needed = _needed_bytes(problem, lasts)
    op = int(needed.argmax())
    outputs = [v for v in range(len(problem.storage_bytes)) if problem.is_output[v]]
    output_bytes = sum(int(problem.storage_bytes[v]) for v in outputs)
    if output_bytes > int(needed[op]):
        return WorkingSet(output_bytes, None, _by_size(problem, outputs))
    pinned = np.flatnonzero((problem.makers <= op) & (lasts >= op)).tolist()
    return WorkingSet(
        int(needed[op]), op, _by_size(problem, {*pinned, *problem.operands_of(op), *problem.results_of(op)})
    )


def last_pinned_operations(problem: Problem) -> Ints:
    """Return, for each storage, the last operation up to which it is pinned."""
    lasts = problem.makers.copy()
    first_stage = 0 if problem.allows_forward_copies else problem.earliest_stage
    may_read_copy = (problem.may_run_again[problem.makers[problem.operands]] != 0) & (problem.readers >= first_stage)
    np.maximum.at(lasts, problem.operands[~may_read_copy], problem.readers[~may_read_copy])
    lasts[(problem.is_output != 0) & (problem.may_run_again[problem.makers] == 0)] = len(problem) - 1
    return lasts


def _needed_bytes(problem: Problem, lasts: Ints) -> Ints:
    """Return, for each operation, the sum of the bytes of the pinned storages, the bytes of its other operands, and its
    inner bytes."""
    change = np.zeros(len(problem) + 1, dtype=np.int64)
    np.add.at(change, problem.makers, problem.storage_bytes)
    np.add.at(change, lasts + 1, -problem.storage_bytes)
    needed = np.cumsum(change)[: len(problem)] + problem.inner_bytes
    is_unpinned = lasts[problem.operands] < problem.readers
    np.add.at(needed, problem.readers[is_unpinned], problem.storage_bytes[problem.operands[is_unpinned]])
    return needed


def _by_size(problem: Problem, values: list[int] | set[int]) -> tuple[int, ...]:
    return tuple(sorted(values, key=lambda v: (-int(problem.storage_bytes[v]), v)))


def live_values_clause(problem: Problem, working_set: WorkingSet, name: Callable[[int], str]) -> str:
    """Return a clause that names the operation of a working set, the makers of its largest values, and the bytes of
    these values.

    `name`: a function that returns the name of an operation, given its index. Operations with the same name are
    listed once.
    """
    where = "at the end" if working_set.operation is None else f"while {name(working_set.operation)} executes"
    sizes = Counter[str]()
    for v in working_set.values:
        sizes[name(int(problem.makers[v]))] += int(problem.storage_bytes[v])
    if working_set.operation is not None and (inner_bytes := int(problem.inner_bytes[working_set.operation])):
        sizes["values inside it"] += inner_bytes
    values = [f"{maker}: {format_bytes(size)}" for maker, size in sizes.most_common(MOST_VALUES)]
    if len(sizes) > MOST_VALUES:
        values.append(f"… and {len(sizes) - MOST_VALUES} more")
    return f"{where}: {', '.join(values)}"


def describe_working_set(problem: Problem, working_set: WorkingSet, most: int = MOST_VALUES) -> tuple[str, ...]:
    """Return the names of the operation and of its `most` largest values, for a message."""
    named = [
        f"{problem.storage_names[v]}: {readable_bytes(int(problem.storage_bytes[v]))}"
        for v in working_set.values[:most]
    ]
    if len(working_set.values) > most:
        named.append(f"… and {len(working_set.values) - most} more")
    if working_set.operation is None:
        return ("the outputs, all of them live at the end", *named)
    return (f"operation {problem.labels[working_set.operation]} ({problem.names[working_set.operation]})", *named)
