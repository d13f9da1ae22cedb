"""The live bytes of `evaluate.py`, computed step by step while operations run, without the rest of the order.

For schedulers that choose an order incrementally. For any order it computes the same numbers as `live_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .evaluate import Counted
from .graph import Graph


@dataclass(frozen=True)
class Footprint:
    """The facts of `Counted`, by storage and by operation.

    `bytes[s]` and `readers[s]` of storage s; `made[i]` and `read[i]`: the storages that operation i makes and reads;
    `inner[i]`: additional bytes of its regions.
    """

    bytes: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...]
    made: tuple[tuple[int, ...], ...]
    read: tuple[tuple[int, ...], ...]
    inner: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> Footprint:
        counted = Counted.of(graph)
        sizes: list[int] = counted.sizes.tolist()
        makers: list[int] = counted.makers.tolist()
        reads: Iterable[tuple[int, int]] = zip(counted.read.tolist(), counted.reader.tolist(), strict=True)
        made: list[list[int]] = [[] for _ in range(len(graph))]
        for storage, maker in enumerate(makers):
            made[maker].append(storage)
        read: list[list[int]] = [[] for _ in range(len(graph))]
        readers: list[list[int]] = [[] for _ in sizes]
        # An operation that reads a storage through two views reads it once.
        for storage, reader in dict.fromkeys(reads):
            read[reader].append(storage)
            readers[storage].append(reader)
        return cls(tuple(sizes), _tuples(readers), _tuples(made), _tuples(read), graph.inner_bytes)

    def made_bytes(self, operation: int) -> int:
        return sum(self.bytes[storage] for storage in self.made[operation])


@dataclass
class LiveSet:
    """`unread[s]`: the number of remaining readers of storage s; `alive_bytes`: live bytes between two operations."""

    footprint: Footprint
    unread: list[int]
    alive_bytes: int = 0

    @classmethod
    def at_start(cls, footprint: Footprint) -> LiveSet:
        return cls(footprint, [len(readers) for readers in footprint.readers])

    def run(self, operation: int) -> int:
        """Run the operation, and free the storages without remaining readers. Returns the live bytes while it runs."""
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
        """The peak bytes if the operations ran now, in this order. Does not change the live set."""
        copy = LiveSet(self.footprint, list(self.unread), self.alive_bytes)
        return max((copy.run(operation) for operation in operations), default=0)


def _tuples(lists: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, lists))
