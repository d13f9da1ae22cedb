"""The count of `evaluate.py` step by step: what is alive while operations run one after the other, whatever comes next.

For who chooses an order as it goes. Of any order it gives what `live_bytes` gives, step by step the same number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .evaluate import Counted
from .graph import Graph


@dataclass(frozen=True)
class Footprint:
    """What `Counted` says, by storage and by operation.

    `bytes[s]` and `readers[s]` of storage s; `made[i]` and `read[i]`: the storages that operation i makes and reads;
    `inner[i]`: what its regions need beyond that.
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
    """`unread[s]`: how many readers storage s still has; `alive_bytes`: between the operations."""

    footprint: Footprint
    unread: list[int]
    alive_bytes: int = 0

    @classmethod
    def at_start(cls, footprint: Footprint) -> LiveSet:
        return cls(footprint, [len(readers) for readers in footprint.readers])

    def run(self, operation: int) -> int:
        """Bytes alive while the operation runs; what nobody reads afterwards is freed."""
        known = self.footprint
        self.alive_bytes += known.made_bytes(operation)
        peak = self.alive_bytes + known.inner[operation]
        self.alive_bytes -= sum(known.bytes[one] for one in known.made[operation] if not self.unread[one])
        for storage in known.read[operation]:
            self.unread[storage] -= 1
            if not self.unread[storage]:
                self.alive_bytes -= known.bytes[storage]
        return peak

    def peak_of(self, operations: Iterable[int]) -> int:
        """The most bytes alive while the operations run, in this order, from here on. Nothing runs."""
        copy = LiveSet(self.footprint, list(self.unread), self.alive_bytes)
        return max((copy.run(operation) for operation in operations), default=0)


def _tuples(lists: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, lists))
