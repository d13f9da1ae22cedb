"""How many bytes are alive at each operation of a graph, in any order: the one count that everything else reads.

Every result is stored, views share the storage of their operand, a storage is freed after its last reader. Temporaries
are what is neither from outside nor returned; constants, and what is computed from constants alone, cost nothing. What
an operation reads and makes is alive while it runs, and so is what its regions need (`inner_bytes`).

`Counted` is what all this says of a graph. A whole order is summed from it here; `live_set.py` sums it step by step.
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
    """The storages that count, by the order of their owners: `owners`, `sizes`, and the operations that make them.

    `read` and `reader` are pairs, one for each read of one of them, views looked through: its number here, and who
    reads it.
    """

    owners: Numbers
    sizes: Numbers
    makers: Numbers
    read: Numbers
    reader: Numbers

    @classmethod
    def of(cls, graph: Graph, returned_too: bool = False) -> Counted:
        """`returned_too`: what is returned counts as well, as in the body of a loop, which makes its own results."""
        free = graph.constants if returned_too else graph.constants | {graph.root[v] for v in graph.returned}
        listed = [v for values in graph.makes for v in values if graph.root[v] == v and v not in free]
        number = {owner: index for index, owner in enumerate(listed)}
        pairs = [
            (index, op)
            for op, values in enumerate(graph.reads)
            for value in values
            if (index := number.get(graph.root[value])) is not None
        ]
        owners, reads = np.array(listed, np.int64), np.array(pairs, np.int64).reshape(-1, 2)
        makers, sizes = np.array(graph.maker, np.int64), np.array(graph.sizes, np.int64)
        return cls(owners, sizes[owners], makers[owners], reads[:, 0], reads[:, 1])


@dataclass(frozen=True)
class Storages:
    """The storages that count, and from when to when each is alive: steps of the order, both inclusive.

    `owners`: the value that owns each storage; all four are of the same length.
    """

    owners: Numbers
    sizes: Numbers
    first: Numbers
    last: Numbers

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Owner, bytes, first and last step of each storage."""
        columns: list[list[int]] = [one.tolist() for one in (self.owners, self.sizes, self.first, self.last)]
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
    """Bytes of temporaries alive at each step of the order, those inside of the operation that runs there included."""
    inner = np.array(graph.inner_bytes, np.int64)
    steps = inner if order is None else inner[np.array(order, np.int64)]
    return bytes_at_each_step(storages(graph, order, returned_too), steps)


def peak_bytes(graph: Graph, order: Sequence[int] | None = None) -> int:
    """The most bytes of temporaries at any step."""
    return int(live_bytes(graph, order).max(initial=0))


def bytes_at_each_step(found: Storages, inner: Numbers) -> Numbers:
    """Bytes alive at each step, `inner` for each what is alive inside of the operation that runs there."""
    change = np.zeros(len(inner) + 1, np.int64)
    np.add.at(change, found.first, found.sizes)
    np.subtract.at(change, found.last + 1, found.sizes)
    return np.cumsum(change[:-1]) + inner


def _steps(graph: Graph, order: Sequence[int] | None) -> Numbers:
    """For each operation the step at which it runs."""
    steps = np.arange(len(graph), dtype=np.int64)
    if order is None:
        return steps
    found = np.empty_like(steps)
    found[np.array(order, np.int64)] = steps
    return found
