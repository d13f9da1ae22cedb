"""The memory model of all planners: the live bytes of temporaries at each operation of an order.

Every result is stored, views share the storage of their operand, and a storage is freed after its last reader.
Temporaries are the storages of results that are not returned; with `Graph.counts_returned`, also the storages of
returned results. Constants, and values computed only from constants, take no memory. The operands and results of an
operation, and the memory of its regions (`Graph.inner_bytes`), are live while it runs.

The function `live_bytes` evaluates a whole order. The class `LiveSet` is updated operation by operation, for schedulers
that choose an order incrementally. Both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .graph import Graph

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class CountedStorages:
    """The temporaries of a graph, as arrays.

    Attributes:
        owners: For each storage, the value that owns it, in ascending order.
        sizes: For each storage, its bytes.
        makers: For each storage, the operation that makes it.
        read, reader: For each read of a storage, through any view, the index of the storage in these arrays, and the
            operation that reads it.
    """

    owners: Numbers
    sizes: Numbers
    makers: Numbers
    read: Numbers
    reader: Numbers

    @classmethod
    def of(cls, graph: Graph, includes_returned: bool = False) -> CountedStorages:
        """Collect the temporaries of a graph. `includes_returned`: whether returned values are temporaries, as in the
        body of a loop."""
        counted = includes_returned or graph.counts_returned
        free = graph.constants if counted else graph.constants | {graph.root[v] for v in graph.returned}
        roots = [v for values in graph.makes for v in values if graph.root[v] == v and v not in free]
        owners, root = np.array(roots, np.int64), np.array(graph.root, np.int64)
        makers, sizes = np.array(graph.maker, np.int64), np.array(graph.sizes, np.int64)
        number = np.full(len(root), -1, np.int64)
        number[owners] = np.arange(len(owners), dtype=np.int64)
        counts = np.fromiter(map(len, graph.reads), np.int64, len(graph.reads))
        values = np.fromiter(chain.from_iterable(graph.reads), np.int64, int(counts.sum()))
        read = number[root[values]]
        reader = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        is_counted = read >= 0
        return cls(owners, sizes[owners], makers[owners], read[is_counted], reader[is_counted])


@dataclass(frozen=True)
class StorageRanges:
    """The temporaries of a graph, with their live ranges in an order; arrays of the same length.

    Attributes:
        owners: The value that owns each storage.
        sizes: The bytes of each storage.
        first, last: The first and the last position of each live range in the order, both inclusive.
    """

    owners: Numbers
    sizes: Numbers
    first: Numbers
    last: Numbers

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield a tuple (owner, bytes, first position, last position) for each storage."""
        columns: list[list[int]] = [array.tolist() for array in (self.owners, self.sizes, self.first, self.last)]
        return zip(*columns, strict=True)  # pyright: ignore[reportReturnType]


def storages(
    graph: Graph,
    order: Sequence[int] | None = None,
    includes_returned: bool = False,
    counted: CountedStorages | None = None,
) -> StorageRanges:
    """Return the temporaries of a graph, with their live ranges in an order.

    Args:
        graph: The graph.
        order: The operations in the order in which they run; program order if not given.
        includes_returned: Whether returned values are temporaries, as in the body of a loop.
        counted: The storages of the graph, if they are already computed.
    """
    counted, step_of = counted or CountedStorages.of(graph, includes_returned), _steps(graph, order)
    first = step_of[counted.makers]
    last = first.copy()
    np.maximum.at(last, counted.read, step_of[counted.reader])
    return StorageRanges(counted.owners, counted.sizes, first, last)


def live_bytes(
    graph: Graph,
    order: Sequence[int] | None = None,
    includes_returned: bool = False,
    counted: CountedStorages | None = None,
) -> Numbers:
    """Return the bytes of live temporaries at each position of the order, including the memory of the regions of the
    operation at this position.

    Args:
        graph: The graph.
        order: As in `storages`.
        includes_returned: As in `storages`.
        counted: As in `storages`.

    Returns:
        An array with an entry for each operation of the order.
    """
    inner = np.array(graph.inner_bytes, np.int64)
    steps = inner if order is None else inner[np.array(order, np.int64)]
    return bytes_at_each_step(storages(graph, order, includes_returned, counted), steps)


def peak_bytes(graph: Graph, order: Sequence[int] | None = None, counted: CountedStorages | None = None) -> int:
    """Return the maximum of the live temporary bytes over all positions of the order.

    Args:
        graph: The graph.
        order: As in `storages`.
        counted: As in `storages`.
    """
    return int(live_bytes(graph, order, counted=counted).max(initial=0))


def bytes_at_each_step(storages: StorageRanges, inner: Numbers) -> Numbers:
    """Return the live bytes at each position of the order. `inner`: for each position, the region bytes of its
    operation."""
    change = np.zeros(len(inner) + 1, np.int64)
    np.add.at(change, storages.first, storages.sizes)
    np.subtract.at(change, storages.last + 1, storages.sizes)
    return np.cumsum(change[:-1]) + inner


def _steps(graph: Graph, order: Sequence[int] | None) -> Numbers:
    steps = np.arange(len(graph), dtype=np.int64)
    if order is None:
        return steps
    step_of = np.empty_like(steps)
    step_of[np.array(order, np.int64)] = steps
    return step_of


@dataclass(frozen=True)
class Footprint:
    """The temporaries of a graph, with lookup tables by storage and by operation.

    Attributes:
        bytes: The bytes of each storage.
        readers: The operations that read each storage.
        made: The storages that each operation makes.
        read: The storages that each operation reads.
        inner: The bytes of the regions of each operation.
    """

    bytes: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...]
    made: tuple[tuple[int, ...], ...]
    read: tuple[tuple[int, ...], ...]
    inner: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> Footprint:
        """Collect the temporaries of a graph."""
        counted = CountedStorages.of(graph)
        sizes: list[int] = counted.sizes.tolist()
        makers: list[int] = counted.makers.tolist()
        reads: Iterable[tuple[int, int]] = zip(counted.read.tolist(), counted.reader.tolist(), strict=True)
        storages_of_op: list[list[int]] = [[] for _ in range(len(graph))]
        for storage, maker in enumerate(makers):
            storages_of_op[maker].append(storage)
        read: list[list[int]] = [[] for _ in range(len(graph))]
        readers: list[list[int]] = [[] for _ in sizes]
        # An operation that reads a storage through two views reads it once.
        for storage, reader in dict.fromkeys(reads):
            read[reader].append(storage)
            readers[storage].append(reader)
        return cls(tuple(sizes), _tuples(readers), _tuples(storages_of_op), _tuples(read), graph.inner_bytes)

    def made_bytes(self, operation: int) -> int:
        """Return the bytes of the storages that an operation makes."""
        return sum(self.bytes[storage] for storage in self.made[operation])


@dataclass
class LiveSet:
    """The live storages between two operations.

    Attributes:
        footprint: The temporaries of the graph.
        unread: For each storage, the number of readers that have not run yet.
        alive_bytes: The live bytes.
    """

    footprint: Footprint
    unread: list[int]
    alive_bytes: int = 0

    @classmethod
    def at_start(cls, footprint: Footprint) -> LiveSet:
        """Return the live set before the first operation."""
        return cls(footprint, [len(readers) for readers in footprint.readers])

    def run(self, operation: int) -> int:
        """Run the operation, and free the storages that have no remaining readers. Returns the live bytes while the
        operation runs."""
        footprint = self.footprint
        self.alive_bytes += footprint.made_bytes(operation)
        peak = self.alive_bytes + footprint.inner[operation]
        unused = [storage for storage in footprint.made[operation] if not self.unread[storage]]
        self.alive_bytes -= sum(footprint.bytes[storage] for storage in unused)
        for storage in footprint.read[operation]:
            self.unread[storage] -= 1
            if not self.unread[storage]:
                self.alive_bytes -= footprint.bytes[storage]
        return peak

    def peak_of(self, operations: Iterable[int]) -> int:
        """Return the peak bytes of the operations if they ran next, in this order. The live set does not change."""
        copy = LiveSet(self.footprint, list(self.unread), self.alive_bytes)
        return max((copy.run(operation) for operation in operations), default=0)


def _tuples(lists: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, lists))
