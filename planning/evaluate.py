"""Live bytes at each operation of a graph, in any order: the single memory model of all planners.

Every result is stored, views share the storage of their operand, a storage is freed after its last reader. Temporaries
are storages that are neither from outside nor returned; constants, and values computed from constants alone, cost
nothing. Where `counts_returned` holds, returned values are temporaries too. The operands and results of an operation
are live while it runs, and so is the memory of its regions (`inner_bytes`).

`Counted` holds these facts of a graph. This module sums a whole order from them; `live_set.py` sums step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import Graph

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """The storages that count, in the order of their owners: `owners`, `sizes` in bytes, and the operations that make
    them (`makers`).

    `read` and `reader` are pairs, one for each read of a storage, looking through views: the index of the storage in
    these arrays, and the reading operation.
    """

    owners: Numbers
    sizes: Numbers
    makers: Numbers
    read: Numbers
    reader: Numbers

    @classmethod
    def of(cls, graph: Graph, returned_too: bool = False) -> Counted:
        """The storages of a graph. `returned_too`: count returned values as well, as in the body of a loop."""
        counted = returned_too or graph.counts_returned
        free = graph.constants if counted else graph.constants | {graph.root[v] for v in graph.returned}
        roots = [v for values in graph.makes for v in values if graph.root[v] == v and v not in free]
        number = {owner: index for index, owner in enumerate(roots)}
        pairs = [
            (index, op)
            for op, values in enumerate(graph.reads)
            for value in values
            if (index := number.get(graph.root[value])) is not None
        ]
        owners, reads = np.array(roots, np.int64), np.array(pairs, np.int64).reshape(-1, 2)
        makers, sizes = np.array(graph.maker, np.int64), np.array(graph.sizes, np.int64)
        return cls(owners, sizes[owners], makers[owners], reads[:, 0], reads[:, 1])


@dataclass(frozen=True)
class Storages:
    """The storages that count, with their live ranges: steps of the order, both inclusive.

    `owners`: the value that owns each storage. All four arrays have the same length.
    """

    owners: Numbers
    sizes: Numbers
    first: Numbers
    last: Numbers

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Owner, bytes, first and last step of each storage."""
        columns: list[list[int]] = [array.tolist() for array in (self.owners, self.sizes, self.first, self.last)]
        return zip(*columns, strict=True)  # pyright: ignore[reportReturnType]


def storages(graph: Graph, order: Sequence[int] | None = None, returned_too: bool = False) -> Storages:
    """The storages made by the graph's operations. `order`: the operations as they run; program order if not given.

    `returned_too`: as in `Counted`.
    """
    counted, step_of = Counted.of(graph, returned_too), _steps(graph, order)
    first = step_of[counted.makers]
    last = first.copy()
    np.maximum.at(last, counted.read, step_of[counted.reader])
    return Storages(counted.owners, counted.sizes, first, last)


def live_bytes(graph: Graph, order: Sequence[int] | None = None, returned_too: bool = False) -> Numbers:
    """Bytes of live temporaries at each step of the order, including the regions of the operation that runs there."""
    inner = np.array(graph.inner_bytes, np.int64)
    steps = inner if order is None else inner[np.array(order, np.int64)]
    return bytes_at_each_step(storages(graph, order, returned_too), steps)


def peak_bytes(graph: Graph, order: Sequence[int] | None = None) -> int:
    """The maximum of the live bytes of temporaries over all steps."""
    return int(live_bytes(graph, order).max(initial=0))


def bytes_at_each_step(storages: Storages, inner: Numbers) -> Numbers:
    """Live bytes at each step. `inner`: bytes inside of the regions of the operation at each step."""
    change = np.zeros(len(inner) + 1, np.int64)
    np.add.at(change, storages.first, storages.sizes)
    np.subtract.at(change, storages.last + 1, storages.sizes)
    return np.cumsum(change[:-1]) + inner


def _steps(graph: Graph, order: Sequence[int] | None) -> Numbers:
    """For each operation the step at which it runs."""
    steps = np.arange(len(graph), dtype=np.int64)
    if order is None:
        return steps
    step_of = np.empty_like(steps)
    step_of[np.array(order, np.int64)] = steps
    return step_of
