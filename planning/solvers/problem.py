"""The input of a solver: the operations in order, with costs, and the storages that they read and make, with bytes.

Conventions of this package:

- An operation is executed and charged as a whole, and writes all its results; unused results die after it.
- First executions follow the given order. Copies are pairs (t, i): operation i runs again in *stage* t, right before
  operation t. Within a stage, copies run in the order of the operations, each at most once. Stage n is the end of the
  step.
- Each use reads the latest *instance* of a storage. An instance is live from its execution to its last use before the
  next execution of the same operation; outputs are live to the end.
- Inputs, parameters and tangents do not count; views share the storage of their operand.

Any set of pairs with i < t is a valid program, because every value has been computed once before.

In the code of this package `t` is a stage, `op` an operation, and `v` a storage, all by number.
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
        value: The storage.
        bytes: The size of the view.
        after: The operation after whose first execution the view can be copied.
        readers: The operations that read the storage only through this view.
    """

    label: str
    value: int
    bytes: int
    after: int
    readers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """Operations 0 … n - 1 in the order of their first executions, and storages 0 … m - 1 in the order of their makers.

    Operation i reads the storages `reads[read_start[i]:read_start[i + 1]]`, without duplicates, and makes the storages
    `range(make_start[i], make_start[i + 1])`.

    Attributes:
        names, labels: For each operation its name in messages, and its name in files.
        costs: For each operation the cost of one execution.
        inner: For each operation the bytes that it needs while it runs, in addition to its operands and results.
        again: For each operation whether it may run twice.
        backward: For each operation whether it belongs to the backward pass.
        value_names: For each storage its name in messages.
        sizes: For each storage its bytes.
        output: For each storage whether it is live to the end.
        earliest: The first stage in which copies may run.
        views: Views that can be copied, so that the remainder of their storage is freed.
        everywhere: Whether copies may run before `earliest` too, which is then only the stage where searches begin.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    costs: Ints
    inner: Ints
    read_start: Ints
    reads: Ints
    make_start: Ints
    again: Ints
    backward: Ints
    value_names: tuple[str, ...]
    sizes: Ints
    output: Ints
    earliest: int = 0
    views: tuple[SmallView, ...] = ()
    everywhere: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def maker(self) -> Ints:
        """The operation that makes each storage."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.make_start))

    @cached_property
    def reader(self) -> Ints:
        """For each entry of `reads` the operation that reads."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.read_start))

    @cached_property
    def users(self) -> Ints:
        """The operations that read each storage, in order: `users[user_start[v]:user_start[v + 1]]` for storage v."""
        return self.reader[np.argsort(self.reads, kind="stable")]

    @cached_property
    def user_start(self) -> Ints:
        """For each storage the index of its first entry in `users`, and one more index for the end."""
        counts = np.bincount(self.reads, minlength=len(self.sizes))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @property
    def cut_center(self) -> int:
        """The operation around which cuts are placed: the first stage of copies, or the middle of the step if copies
        may run from its beginning on."""
        return self.earliest if self.earliest > 0 else len(self) // 2

    @cached_property
    def total_cost(self) -> int:
        """The cost of one execution of the plain step."""
        return int(self.costs.sum())

    @cached_property
    def working_bytes(self) -> Ints:
        """The bytes that each operation reads, makes and needs inside. No schedule peaks below their maximum."""
        read = _sums(self.sizes[self.reads], self.read_start)
        return read + _sums(self.sizes, self.make_start) + self.inner

    def reads_of(self, op: int) -> tuple[int, ...]:
        """Return the storages that an operation reads."""
        return self._reads_by_operation[op]

    def makes_of(self, op: int) -> range:
        """Return the storages that an operation makes."""
        return self._makes_by_operation[op]

    def users_of(self, storage: int) -> tuple[int, ...]:
        """Return the operations that read a storage, in order."""
        return self._users_by_storage[storage]

    @cached_property
    def _reads_by_operation(self) -> list[tuple[int, ...]]:
        return _rows_of(self.reads, self.read_start)

    @cached_property
    def _makes_by_operation(self) -> list[range]:
        starts: list[int] = self.make_start.tolist()
        return [range(start, end) for start, end in pairwise(starts)]

    @cached_property
    def _users_by_storage(self) -> list[tuple[int, ...]]:
        return _rows_of(self.users, self.user_start)

    def cost_of(self, pairs: Iterable[Pair]) -> int:
        """Return the total cost of the copies."""
        return sum(int(self.costs[op]) for _, op in pairs)

    def percent(self, cost: float) -> float:
        """Return a cost in percent of one plain execution of the step."""
        return 100.0 * cost / self.total_cost if self.total_cost else 0.0


@dataclass(frozen=True)
class OperationRow:
    """An operation, as input of `problem_of`. The other fields are those of `Problem`.

    Attributes:
        reads: Storages by number.
        makes: The bytes of its results.
    """

    name: str
    cost: int
    reads: Sequence[int] = ()
    makes: Sequence[int] = ()
    inner: int = 0
    again: bool = True
    backward: bool = False
    label: str = ""


def problem_of(
    rows: Sequence[OperationRow],
    outputs: Iterable[int],
    value_names: Sequence[str] | None = None,
    earliest: int | None = None,
    views: Sequence[SmallView] = (),
    everywhere: bool = False,
) -> Problem:
    """Build a problem from rows. Storages are numbered in the order in which the rows make them.

    Args:
        rows: The operations in the order of their first executions.
        outputs: The storages that are live to the end.
        value_names: The name of each storage in messages; by default made from the name of its operation.
        earliest: The first stage in which copies may run; if None, the first backward operation, or 0 without one.
        views: As in `Problem`.
        everywhere: As in `Problem`.

    Raises:
        ValueError: For a read before the definition.
    """
    make_start = _starts([len(row.makes) for row in rows])
    reads = [sorted(set(row.reads)) for row in rows]
    for op, (row, values) in enumerate(zip(rows, reads, strict=True)):
        if values and (values[0] < 0 or values[-1] >= make_start[op]):
            raise ValueError(f"operation {op} ({row.name}) reads a value that is not made before it")
    sizes = np.array([size for row in rows for size in row.makes], np.int64)
    output = np.zeros(len(sizes), np.int64)
    output[list(outputs)] = 1
    first = next((op for op, row in enumerate(rows) if row.backward), 0)
    return Problem(
        names=tuple([row.name for row in rows]),
        labels=tuple([row.label or str(op) for op, row in enumerate(rows)]),
        costs=np.array([row.cost for row in rows], np.int64),
        inner=np.array([row.inner for row in rows], np.int64),
        read_start=_starts([len(values) for values in reads]),
        reads=np.array([value for values in reads for value in values], np.int64),
        make_start=make_start,
        again=np.array([row.again for row in rows], np.int64),
        backward=np.array([row.backward for row in rows], np.int64),
        value_names=tuple(value_names) if value_names is not None else _names(rows),
        sizes=sizes,
        output=output,
        earliest=first if earliest is None else earliest,
        views=tuple(views),
        everywhere=everywhere,
    )


def _names(rows: Sequence[OperationRow]) -> tuple[str, ...]:
    return tuple(
        [row.name if len(row.makes) == 1 else f"{row.name}#{at}" for row in rows for at in range(len(row.makes))]
    )


def _starts(counts: Sequence[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _rows_of(entries: Ints, starts: Ints) -> list[tuple[int, ...]]:
    """Return the slices of the entries between two starts."""
    flat, bounds = tuple(entries.tolist()), starts.tolist()
    return [flat[start:end] for start, end in pairwise(bounds)]


def _sums(values: Ints, starts: Ints) -> Ints:
    """Return the sum of each slice between two starts."""
    total = np.concatenate([[0], np.cumsum(values)]).astype(np.int64)
    return total[starts[1:]] - total[starts[:-1]]
