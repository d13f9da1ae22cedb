"""The input of a solver: the operations in order with their costs, and the storages that they read and make with their
sizes.

Conventions of this package:

- An operation is executed and charged as a whole. It writes all its results; unused results die after it.
- First executions follow the given order. Copies are pairs (t, i): operation i is rerun in *stage* t, right before
  operation t. Within a stage, copies run in the order of the operations, each at most once. Stage n is the end of the
  step.
- Each use reads the latest *instance* of a storage. An instance is live from its execution to its last use before the
  next execution of the same operation; outputs are live to the end.
- Inputs, parameters and tangents do not count towards the peak; views share the storage of their operand.

Any set of pairs (t, i) with i < t gives a valid program, because every value that a copy reads has been computed
before.

In the code of this package, `t` is a stage, `op` an operation and `v` a storage; all are indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Pair = tuple[int, int]
"""A copy (stage, operation)."""


@dataclass(frozen=True)
class SmallView:
    """A view that is smaller than its storage.

    Attributes:
        label: The name of its node.
        storage: Its storage.
        bytes: The size of the view.
        available_after: The view can be copied after the first execution of this operation.
        readers: The operations that read the storage only through this view.
    """

    label: str
    storage: int
    bytes: int
    available_after: int
    readers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """Operations 0 … n - 1 in the order of their first executions, and storages 0 … m - 1 in the order of their makers.

    The arrays have the element type int64. The board of the kernels (`kernels/board.py`) uses the same names and
    entries.

    | array | entries | entry |
    |---|---|---|
    | `costs` | operations | cost of one execution, in the unit of the cost model |
    | `inner_bytes` | operations | bytes that it needs while it runs, besides operands and results |
    | `may_run_again` | operations | 1 if it may be copied, otherwise 0 |
    | `is_backward` | operations | 1 if it belongs to the backward pass, otherwise 0 |
    | `operand_start` | operations, end | operation i reads `operands[operand_start[i]:operand_start[i + 1]]` |
    | `operands` | reads | storage that is read; no operation lists a storage twice |
    | `readers` | reads | operation that reads the storage at the same index of `operands` |
    | `result_start` | operations, end | operation i makes `range(result_start[i], result_start[i + 1])` |
    | `storage_bytes` | storages | size in bytes |
    | `is_output` | storages | 1 if it is live to the end, otherwise 0 |
    | `makers` | storages | operation that makes it |
    | `use_start` | storages, end | storage v is read by `uses[use_start[v]:use_start[v + 1]]` |
    | `uses` | reads | operation that reads the storage; in program order for each storage |

    Attributes:
        names, labels: For each operation, its name in messages and its name in files.
        storage_names: For each storage, its name in messages.
        earliest_stage: The first stage in which copies may run.
        views: Views that can be copied. Copying a view frees the rest of its storage.
        allows_forward_copies: Whether copies may also run before `earliest_stage`. If so, searches still begin with
            copies from `earliest_stage` on.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    costs: Ints
    inner_bytes: Ints
    may_run_again: Ints
    is_backward: Ints
    operand_start: Ints
    operands: Ints
    result_start: Ints
    storage_names: tuple[str, ...]
    storage_bytes: Ints
    is_output: Ints
    earliest_stage: int = 0
    views: tuple[SmallView, ...] = ()
    allows_forward_copies: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def makers(self) -> Ints:
        """The operation that makes each storage."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.result_start))

    @cached_property
    def readers(self) -> Ints:
        """The operation that reads each entry of `operands`."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.operand_start))

    @cached_property
    def uses(self) -> Ints:
        """The operations that read each storage."""
        return self.readers[np.argsort(self.operands, kind="stable")]

    @cached_property
    def use_start(self) -> Ints:
        """The index of the first entry of each storage in `uses`, followed by the length of `uses`."""
        counts = np.bincount(self.operands, minlength=len(self.storage_bytes))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def cut_center(self) -> int:
        """The operation around which cuts are placed: the first stage in which copies may run, or the middle of the
        step if they may run from the beginning."""
        return self.earliest_stage if self.earliest_stage > 0 else len(self) // 2

    @cached_property
    def total_cost(self) -> int:
        """The cost of one execution of the plain step."""
        return int(self.costs.sum())

    @cached_property
    def working_bytes(self) -> Ints:
        """For each operation, the total bytes of its operands, its results and its inner memory. The peak of any
        schedule is at least the maximum."""
        read = _sums(self.storage_bytes[self.operands], self.operand_start)
        return read + _sums(self.storage_bytes, self.result_start) + self.inner_bytes

    def operands_of(self, op: int) -> tuple[int, ...]:
        """Return the storages that an operation reads."""
        return self._operands_by_operation[op]

    def results_of(self, op: int) -> range:
        """Return the storages that an operation makes."""
        return self._results_by_operation[op]

    def uses_of(self, storage: int) -> tuple[int, ...]:
        """Return the operations that read a storage, in order."""
        return self._uses_by_storage[storage]

    @cached_property
    def _operands_by_operation(self) -> list[tuple[int, ...]]:
        return _rows_of(self.operands, self.operand_start)

    @cached_property
    def _results_by_operation(self) -> list[range]:
        starts: list[int] = self.result_start.tolist()
        return [range(start, end) for start, end in pairwise(starts)]

    @cached_property
    def _uses_by_storage(self) -> list[tuple[int, ...]]:
        return _rows_of(self.uses, self.use_start)

    def cost_of(self, pairs: Iterable[Pair]) -> int:
        """Return the total cost of the copies."""
        return sum(int(self.costs[op]) for _, op in pairs)

    def percent(self, cost: float) -> float:
        """Return a cost in percent of the cost of the plain step."""
        return 100.0 * cost / self.total_cost if self.total_cost else 0.0


@dataclass(frozen=True)
class OperationRow:
    """An operation, as the input of `problem_of`. `Problem` describes the fields that are not listed here.

    Attributes:
        operands: The indices of the storages that it reads.
        result_bytes: The bytes of each result.
    """

    name: str
    cost: int
    operands: Sequence[int] = ()
    result_bytes: Sequence[int] = ()
    inner_bytes: int = 0
    may_run_again: bool = True
    is_backward: bool = False
    label: str = ""


def problem_of(
    rows: Sequence[OperationRow],
    outputs: Iterable[int],
    storage_names: Sequence[str] | None = None,
    earliest_stage: int | None = None,
    views: Sequence[SmallView] = (),
    allows_forward_copies: bool = False,
) -> Problem:
    """Build a problem from rows. Storages are numbered in the order in which the rows make them.

    Args:
        rows: The operations in the order of their first executions.
        outputs: The storages that are live to the end.
        storage_names: The name of each storage in messages; by default derived from the name of its operation.
        earliest_stage: The first stage in which copies may run; if None, the stage of the first backward operation, or
            0 if there is none.
        views: As in `Problem`.
        allows_forward_copies: As in `Problem`.

    Raises:
        ValueError: If an operation reads a storage that no earlier operation makes.
    """
    result_start = _starts([len(row.result_bytes) for row in rows])
    operands = [sorted(set(row.operands)) for row in rows]
    for op, (row, storages) in enumerate(zip(rows, operands, strict=True)):
        if storages and (storages[0] < 0 or storages[-1] >= result_start[op]):
            raise ValueError(f"operation {op} ({row.name}) reads a value that no earlier operation makes")
    storage_bytes = np.array([size for row in rows for size in row.result_bytes], np.int64)
    is_output = np.zeros(len(storage_bytes), np.int64)
    is_output[list(outputs)] = 1
    first_backward = next((op for op, row in enumerate(rows) if row.is_backward), 0)
    return Problem(
        names=tuple([row.name for row in rows]),
        labels=tuple([row.label or str(op) for op, row in enumerate(rows)]),
        costs=np.array([row.cost for row in rows], np.int64),
        inner_bytes=np.array([row.inner_bytes for row in rows], np.int64),
        operand_start=_starts([len(storages) for storages in operands]),
        operands=np.array([storage for storages in operands for storage in storages], np.int64),
        result_start=result_start,
        may_run_again=np.array([row.may_run_again for row in rows], np.int64),
        is_backward=np.array([row.is_backward for row in rows], np.int64),
        storage_names=tuple(storage_names) if storage_names is not None else _names(rows),
        storage_bytes=storage_bytes,
        is_output=is_output,
        earliest_stage=first_backward if earliest_stage is None else earliest_stage,
        views=tuple(views),
        allows_forward_copies=allows_forward_copies,
    )


def _names(rows: Sequence[OperationRow]) -> tuple[str, ...]:
    return tuple(
        [
            row.name if len(row.result_bytes) == 1 else f"{row.name}#{result}"
            for row in rows
            for result in range(len(row.result_bytes))
        ]
    )


def _starts(counts: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _rows_of(entries: Ints, starts: Ints) -> list[tuple[int, ...]]:
    """Return the rows of a table in compressed form: the slice of the entries between each pair of consecutive
    starts."""
    flat, bounds = tuple(entries.tolist()), starts.tolist()
    return [flat[start:end] for start, end in pairwise(bounds)]


def _sums(values: Ints, starts: Ints) -> Ints:
    """Return the sums of the rows of a table in compressed form: the sum of the values between each pair of consecutive
    starts."""
    total = np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
    return total[starts[1:]] - total[starts[:-1]]
