"""Orders of a stretch of operations in which little is alive, each by its own rule; which is best differs among steps.

by_bytes_freed      forward, of what is ready the operation that frees most (Goodman and Hsu, "Code scheduling and
                    register allocation in large basic blocks", 1988; XLA's list scheduler)
by_bytes_revived    the same from the end backwards: of what nobody reads any more the one that revives least
just_in_time        each operation shortly before what reads it: depth first from the results (Sethi and Ullman, "The
                    generation of optimal code for arithmetic expressions", 1970)

XLA does the same with rules of its own (`xla/service/hlo_memory_scheduler.cc`). All take about as long as sorting.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from ....planning.live_set import Footprint
from ....planning.orders import Ready
from .precedence import Precedence


@dataclass(frozen=True)
class Stretch:
    """`unread`: for each storage how many readers are left when the stretch begins."""

    operations: range
    precedence: Precedence
    footprint: Footprint
    unread: Sequence[int]

    @property
    def needs(self) -> dict[int, Set[int]]:
        return {operation: self.precedence.needs[operation] for operation in self.operations}

    @property
    def needed_by(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {operation: [] for operation in self.operations}
        for one, needs in self.needs.items():
            for needed in needs:
                found[needed].append(one)
        return found


def by_bytes_freed(stretch: Stretch) -> list[int]:
    known, unread = stretch.footprint, dict[int, int]()

    def left(storage: int) -> int:
        return unread.get(storage, stretch.unread[storage])

    def cost(one: int) -> int:
        return known.made_bytes(one) - sum(known.bytes[storage] for storage in known.read[one] if left(storage) == 1)

    def run(one: int) -> Iterable[int]:
        for storage in known.read[one]:
            unread[storage] = left(storage) - 1
            if unread[storage] == 1:
                yield from known.readers[storage]

    return _listed(stretch.needs, lambda one: (cost(one), one), run)


def by_bytes_revived(stretch: Stretch) -> list[int]:
    known, end = stretch.footprint, stretch.operations.stop
    alive = set[int]()

    def is_alive(storage: int) -> bool:
        return storage in alive or known.readers[storage][-1] >= end

    def cost(one: int) -> int:
        revived = sum(known.bytes[storage] for storage in known.read[one] if not is_alive(storage))
        return revived - known.made_bytes(one)

    def run(one: int) -> Iterable[int]:
        for storage in known.read[one]:
            if not is_alive(storage):
                alive.add(storage)
                yield from known.readers[storage]

    return _listed(stretch.needed_by, lambda one: (cost(one), -one), run)[::-1]


def just_in_time(stretch: Stretch) -> list[int]:
    ready = Ready(stretch.needed_by)
    stack, found = ready.at_start(), list[int]()
    while stack:
        found.append(stack.pop())
        stack += sorted(ready.done(found[-1]))
    return found[::-1]


def _listed(
    waits_for: Mapping[int, Iterable[int]], cost: Callable[[int], tuple[int, int]], run: Callable[[int], Iterable[int]]
) -> list[int]:
    """Of what is ready the cheapest first. `run` gives the operations that may have become cheaper."""
    account = Ready(waits_for)
    ready = set(account.at_start())
    heap = [(cost(one), one) for one in ready]
    heapq.heapify(heap)
    found = list[int]()
    while heap:
        said, one = heapq.heappop(heap)
        # An entry that was pushed before the operation became cheaper is passed over.
        if one not in ready or said != cost(one):
            continue
        ready.remove(one)
        found.append(one)
        cheaper = [other for other in run(one) if other in ready]
        new = sorted(account.done(one))
        ready.update(new)
        for other in (*cheaper, *new):
            heapq.heappush(heap, (cost(other), other))
    return found


RULES: tuple[Callable[[Stretch], list[int]], ...] = (by_bytes_freed, by_bytes_revived, just_in_time)
