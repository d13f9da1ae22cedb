"""How many bytes are alive at each operation of a graph, in any order: the one count that everything else reads.

Every result is stored, views share the storage of their operand, a storage is freed after its last reader. Temporaries
are what is neither from outside nor returned; constants, and what is computed from constants alone, cost nothing. An
operation holds what it reads and makes, and what its regions hold (`inner_bytes`), while it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import Graph

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Storages:
    """The storages that count, and from when to when each is alive: steps of the order, both inclusive.

    `values`: who owns each storage; all four are of the same length, in the order of the owners.
    """

    values: Numbers
    sizes: Numbers
    first: Numbers
    last: Numbers

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Owner, bytes, first and last step of each storage."""
        columns: list[list[int]] = [one.tolist() for one in (self.values, self.sizes, self.first, self.last)]
        return zip(*columns, strict=True)  # pyright: ignore[reportReturnType]


def storages(graph: Graph, order: Sequence[int] | None = None, returned_too: bool = False) -> Storages:
    """The storages made by the graph's operations. `order`: the operations as they run; program order if not given.

    `returned_too`: what is returned counts as well, as in the body of a loop, which makes its own results.
    """
    step_of = _steps(graph, order)
    not_counted = graph.constants if returned_too else graph.constants | {graph.root[v] for v in graph.returned}
    owners = [v for values in graph.makes for v in values if graph.root[v] == v and v not in not_counted]
    values = np.array(owners, np.int64)
    makers, sizes = np.array(graph.maker, np.int64), np.array(graph.sizes, np.int64)
    last = np.full(len(graph.maker), -1, np.int64)
    storage, reader = _reads(graph)
    np.maximum.at(last, storage, step_of[reader])
    first = step_of[makers[values]]
    return Storages(values, sizes[values], first, np.maximum(first, last[values]))


def live_bytes(graph: Graph, order: Sequence[int] | None = None, returned_too: bool = False) -> Numbers:
    """Bytes of temporaries alive at each step of the order, those inside of the operation that runs there included."""
    found = storages(graph, order, returned_too)
    inner = np.array(graph.inner_bytes, np.int64)
    return sum_of_lives(found, len(graph)) + (inner if order is None else inner[np.array(order, np.int64)])


def peak_bytes(graph: Graph, order: Sequence[int] | None = None) -> int:
    """The most bytes of temporaries at any step."""
    return int(live_bytes(graph, order).max(initial=0))


def sum_of_lives(found: Storages, length: int) -> Numbers:
    """Bytes alive at each of `length` steps."""
    change = np.zeros(length + 1, np.int64)
    np.add.at(change, found.first, found.sizes)
    np.subtract.at(change, found.last + 1, found.sizes)
    return np.cumsum(change[:-1])


def _steps(graph: Graph, order: Sequence[int] | None) -> Numbers:
    """For each operation the step at which it runs."""
    steps = np.arange(len(graph), dtype=np.int64)
    if order is None:
        return steps
    found = np.empty_like(steps)
    found[np.array(order, np.int64)] = steps
    return found


def _reads(graph: Graph) -> tuple[Numbers, Numbers]:
    """Every read as the storage that is read and the operation that reads it. Only results of operations are."""
    read = [(graph.root[value], op) for op, values in enumerate(graph.reads) for value in values]
    pairs = np.array(read, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
