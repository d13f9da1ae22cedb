"""List schedules with few live bytes for a stretch of operations; the best rule differs among steps.

by_bytes_freed      forwards: the ready operation that frees the most bytes (Goodman and Hsu, "Code scheduling and
                    register allocation in large basic blocks", 1988; XLA's list scheduler)
by_bytes_revived    backwards from the end: among operations without remaining readers the one that makes the fewest
                    bytes live
just_in_time        each operation shortly before its readers: depth first from the results (Sethi and Ullman, "The
                    generation of optimal code for arithmetic expressions", 1970)

XLA has similar rules (`xla/service/hlo_memory_scheduler.cc`). All take about as long as sorting.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from ....planning.liveness import Footprint
from ....planning.orders import Ready
from .precedence import Precedence


@dataclass(frozen=True)
class Stretch:
    """A range of operations to schedule. `unread`: the number of remaining readers of each storage at its start."""

    operations: range
    precedence: Precedence
    footprint: Footprint
    unread: Sequence[int]

    @property
    def needs(self) -> dict[int, Set[int]]:
        return {operation: self.precedence.needs[operation] for operation in self.operations}

    @property
    def needed_by(self) -> dict[int, list[int]]:
        readers: dict[int, list[int]] = {operation: [] for operation in self.operations}
        for operation, needs in self.needs.items():
            for needed in needs:
                readers[needed].append(operation)
        return readers


def by_bytes_freed(stretch: Stretch) -> list[int]:
    footprint, unread = stretch.footprint, dict[int, int]()

    def remaining_readers(storage: int) -> int:
        return unread.get(storage, stretch.unread[storage])

    def cost(op: int) -> int:
        return footprint.made_bytes(op) - sum(
            footprint.bytes[storage] for storage in footprint.read[op] if remaining_readers(storage) == 1
        )

    def run(op: int) -> Iterable[int]:
        for storage in footprint.read[op]:
            unread[storage] = remaining_readers(storage) - 1
            if unread[storage] == 1:
                yield from footprint.readers[storage]

    return _list_schedule(stretch.needs, lambda op: (cost(op), op), run)


def by_bytes_revived(stretch: Stretch) -> list[int]:
    footprint, end = stretch.footprint, stretch.operations.stop
    live = set[int]()

    def is_live(storage: int) -> bool:
        return storage in live or footprint.readers[storage][-1] >= end

    def cost(op: int) -> int:
        revived = sum(footprint.bytes[storage] for storage in footprint.read[op] if not is_live(storage))
        return revived - footprint.made_bytes(op)

    def run(op: int) -> Iterable[int]:
        for storage in footprint.read[op]:
            if not is_live(storage):
                live.add(storage)
                yield from footprint.readers[storage]

    return _list_schedule(stretch.needed_by, lambda op: (cost(op), -op), run)[::-1]


def just_in_time(stretch: Stretch) -> list[int]:
    ready = Ready(stretch.needed_by)
    stack, order = ready.at_start(), list[int]()
    while stack:
        order.append(stack.pop())
        stack += sorted(ready.done(order[-1]))
    return order[::-1]


def _list_schedule(
    waits_for: Mapping[int, Iterable[int]], cost: Callable[[int], tuple[int, int]], run: Callable[[int], Iterable[int]]
) -> list[int]:
    """Schedule the cheapest ready operation first. `run` returns the operations that may have become cheaper."""
    readiness = Ready(waits_for)
    ready = set(readiness.at_start())
    heap = [(cost(op), op) for op in ready]
    heapq.heapify(heap)
    order = list[int]()
    while heap:
        entry_cost, op = heapq.heappop(heap)
        # Skip outdated entries: they were pushed before the operation became cheaper.
        if op not in ready or entry_cost != cost(op):
            continue
        ready.remove(op)
        order.append(op)
        cheaper = [other for other in run(op) if other in ready]
        new = sorted(readiness.done(op))
        ready.update(new)
        for other in (*cheaper, *new):
            heapq.heappush(heap, (cost(other), other))
    return order


RULES: tuple[Callable[[Stretch], list[int]], ...] = (by_bytes_freed, by_bytes_revived, just_in_time)
