"""Which storages each operation makes and reads, as numbers: what an order of operations costs in bytes, quickly.

The same model as `planning/evaluate.py`: views share the storage of their operand, constants and results of the
function cost nothing, and an operation holds what it reads and what it makes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ....planning.evaluate import storages
from ....planning.graph import Graph


@dataclass(frozen=True)
class Footprint:
    """By positions in program order, and by numbers of storages.

    `bytes[s]` and `readers[s]` of storage s; `made[i]` and `read[i]`: the storages that operation i makes and reads;
    `inner[i]`: what its regions hold beyond that.
    """

    bytes: tuple[int, ...]
    readers: tuple[tuple[int, ...], ...]
    made: tuple[tuple[int, ...], ...]
    read: tuple[tuple[int, ...], ...]
    inner: tuple[int, ...]

    @classmethod
    def of(cls, graph: Graph) -> Footprint:
        counted: list[int] = storages(graph).values.tolist()
        number: dict[int, int] = {value: index for index, value in enumerate(counted)}
        readers: list[list[int]] = [[] for _ in counted]
        read = list[tuple[int, ...]]()
        for op, values in enumerate(graph.reads):
            roots = dict.fromkeys([graph.root[value] for value in values])
            read.append(tuple([number[root] for root in roots if root in number]))
            for storage in read[-1]:
                readers[storage].append(op)
        return cls(
            tuple([graph.sizes[value] for value in counted]),
            tuple(map(tuple, readers)),
            tuple([tuple([number[one] for one in made if one in number]) for made in graph.makes]),
            tuple(read),
            graph.inner_bytes,
        )

    def made_bytes(self, operation: int) -> int:
        return sum(self.bytes[storage] for storage in self.made[operation])


@dataclass
class Held:
    """What is alive while operations run one after the other. `unread[s]`: how many readers storage s still has."""

    footprint: Footprint
    unread: list[int]
    alive_bytes: int = 0

    @classmethod
    def at_start(cls, footprint: Footprint) -> Held:
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
        copy = Held(self.footprint, list(self.unread), self.alive_bytes)
        return max((copy.run(operation) for operation in operations), default=0)
