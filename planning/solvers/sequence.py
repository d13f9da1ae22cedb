"""Evaluate copies exactly: compute their flat order of execution, and the peak and the cost of this order.

    evaluate(problem, sequence)         peak bytes and cost of any order of execution with repetitions

Copies are pairs (stage, operation): the operation runs again before the operation `stage`. A use reads the result of
the latest execution before it. `ValueError` is raised for an order that uses a value before its definition or omits an
operation. The solvers check their results with this module, which does not use the data of their search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from .problem import Ints, Pair, Problem


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of an order of execution.

    Attributes:
        peak_bytes, position: The peak in bytes, and the position in the order where it occurs.
        cost: The cost of all executions.
        extra_cost: The cost of all executions except the first one of each operation.
        bytes_at: The live bytes at each position, including the inner bytes of the operation that runs there.
    """

    peak_bytes: int
    position: int
    cost: int
    extra_cost: int
    bytes_at: Ints


def sequence_of(problem: Problem, pairs: Collection[Pair]) -> Ints:
    """Return the operations in execution order. The copies of a stage run before the stage's operation.

    Raises:
        ValueError: If a copy precedes its operation, if an operation that must not run twice is copied, or if two
            copies are equal.
    """
    n = len(problem)
    rows = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    stages, copied = rows[:, 0], rows[:, 1]
    if len(rows) and (stages.max() > n or copied.min() < 0 or bool((copied >= stages).any())):
        raise ValueError("a copy precedes the operation that it copies")
    if len(set(map(tuple, rows.tolist()))) != len(rows):
        unique, counts = np.unique(rows, axis=0, return_counts=True)
        stage, op = unique[counts.argmax()].tolist()
        raise ValueError(f"operation {op} ({problem.names[op]}) is copied twice in stage {stage}")
    if len(rows) and not problem.may_run_again[copied].all():
        raise ValueError("an operation that must not run twice is copied")
    # The order is sorted by stage. Within a stage, the copies come first, and the operation of the stage last.
    operations = np.arange(n, dtype=np.int64)
    keys = np.concatenate([stages * (n + 1) + copied, operations * (n + 1) + n])
    return np.concatenate([copied, operations])[np.argsort(keys, kind="stable")]


def evaluate(problem: Problem, sequence: Ints) -> Evaluation:
    """Evaluate an order of execution. Raises `ValueError` if the order is not a valid program."""
    _check(problem, sequence)
    births, deaths, values = _instances(problem, sequence)
    sizes = problem.storage_bytes[values].astype(np.float64)
    length = len(sequence)
    # Doubles are exact here: bytes are far below 2 ** 53.
    change = np.bincount(births, sizes, length + 1) - np.bincount(deaths + 1, sizes, length + 2)[: length + 1]
    alive = np.cumsum(change[:length]).astype(np.int64) + problem.inner_bytes[sequence]
    cost = int(problem.costs[sequence].sum())
    position = int(alive.argmax()) if length else 0
    peak = int(alive[position]) if length else 0
    return Evaluation(peak, position, cost, cost - problem.total_cost, alive)


def read_order(problem: Problem, text: str, name: str = "order") -> Ints:
    """Parse an order of execution from text with the label of one operation per line.

    Args:
        problem: The problem.
        text: The text; `#` begins a comment.
        name: The name of the file, for messages.

    Raises:
        ValueError: If a label is unknown; the message contains its line.
    """
    numbers = {label: op for op, label in enumerate(problem.labels)}
    sequence = list[int]()
    for line_number, line in enumerate(text.splitlines(), 1):
        word = line.split("#")[0].strip()
        if word and word not in numbers:
            raise ValueError(f"{name}:{line_number}:1: error: {word!r} is not the label of an operation of the graph")
        if word:
            sequence.append(numbers[word])
    return np.array(sequence, np.int64)


def order_text(problem: Problem, sequence: Iterable[int]) -> str:
    """Return an order of execution as text with one label per line, in the format that `read_order` parses."""
    return "".join([f"{problem.labels[op]}\n" for op in sequence])


def _check(problem: Problem, sequence: Ints) -> None:
    """Raise `ValueError` unless each operation runs, and runs after the makers of its operands."""
    n = len(problem)
    if len(sequence) and (sequence.min() < 0 or sequence.max() >= n):
        unknown = sequence[(sequence < 0) | (sequence >= n)][0]
        raise ValueError(f"the order contains operation {unknown}, but the graph has only {n} operations")
    first = np.full(n, -1, np.int64)
    first[sequence[::-1]] = np.arange(len(sequence), dtype=np.int64)[::-1]
    if (first < 0).any():
        missing = int(np.flatnonzero(first < 0)[0])
        raise ValueError(f"the order omits operation {missing} ({problem.names[missing]})")
    late = np.flatnonzero(first[problem.makers[problem.operands]] > first[problem.readers])
    if len(late):
        reader, value = int(problem.readers[late[0]]), int(problem.operands[late[0]])
        raise ValueError(
            f"operation {reader} ({problem.names[reader]}) uses {problem.storage_names[value]} before its definition"
        )


def _instances(problem: Problem, sequence: Ints) -> tuple[Ints, Ints, Ints]:
    """Return three arrays with an entry for each instance: the positions of its definition and of its last use, and its
    storage."""
    steps = np.arange(len(sequence), dtype=np.int64)
    made_at, results = _expand(problem.result_start, None, sequence, steps)
    used_at, used = _expand(problem.operand_start, problem.operands, sequence, steps)
    ends = np.flatnonzero(problem.is_output)
    values = np.concatenate([results, used, ends])
    when = np.concatenate([made_at, used_at, np.full(len(ends), len(sequence) - 1, np.int64)])
    head = np.concatenate([np.ones(len(results), np.bool_), np.zeros(len(used) + len(ends), np.bool_)])
    order = np.lexsort((~head, when, values))
    values, when, head = values[order], when[order], head[order]
    heads = np.flatnonzero(head)
    lasts = np.concatenate([heads[1:] - 1, [len(values) - 1]]) if len(heads) else heads
    assert bool((values[heads] == values[lasts]).all()), "a storage is used before its definition"
    return when[heads], when[lasts], values[heads]


def _expand(starts: Ints, entries: Ints | None, sequence: Ints, steps: Ints) -> tuple[Ints, Ints]:
    """Look up the row of each execution in a table in compressed form. Returns two arrays: the position of the
    execution for each entry, and the entries."""
    counts = starts[sequence + 1] - starts[sequence]
    when = np.repeat(steps, counts)
    offset = np.arange(len(when), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    indices = starts[sequence][when] + offset
    return when, indices if entries is None else entries[indices]
