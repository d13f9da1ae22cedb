"""First uses of copies in the backward pass, and the places where the backward pass enters a segment."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import accumulate

from ..graph import Graph
from .entries import later_entries
from .targets import Targets


def first_uses(graph: Graph, targets: Targets, operations: Iterable[int], values: Collection[int]) -> dict[int, int]:
    """For each operation the first gradient operation that needs a copy of it.

    Either a gradient operation reads one of its `values`, or the copy of another of the `operations` does. Operations
    without such a use are omitted; the others are in program order.
    """
    uses = dict[int, int]()
    for op in sorted(operations, reverse=True):
        needed = list[int]()
        for value in graph.makes[op]:
            if value in values:
                for reader in targets.readers(graph, value):
                    if graph.gradient[reader]:
                        needed.append(reader)
                    elif reader in uses:
                        needed.append(uses[reader])
        if needed:
            uses[op] = min(needed)
    return dict(reversed(uses.items()))


def arrivals(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> list[int]:
    """The first uses of the entries of a segment.

    If a path leaves a segment and returns to it through other forward operations, the segment is entered twice, and the
    cotangent of the first entry depends on the gradients of the second: one barrier over both would be a cycle, and
    copies of both would be live while the backward pass differentiates the operations in between. Independent entries
    are separate too if the backward pass finishes one before it reaches the next.
    """
    first = dict[int, int]()
    for op, entry in _entries(graph, uses, is_inside).items():
        first[entry] = min(first.get(entry, uses[op]), uses[op])
    return _after_their_originals(uses, {*first.values(), *later_entries(graph, uses, is_inside)})


def _after_their_originals(uses: Mapping[int, int], starts: set[int]) -> list[int]:
    """Add arrivals, so that no operation is copied before it has run: relevant if a gradient follows another one."""
    arrival_places = sorted(starts)
    operations = sorted(uses)
    # The first use of an operation or of a later one is behind the operation itself.
    soonest = list(accumulate((uses[op] for op in reversed(operations)), min))
    for op, use in zip(operations, reversed(soonest), strict=True):
        if arrival_places[bisect_right(arrival_places, uses[op]) - 1] < op:
            insort(arrival_places, use)
    return arrival_places


def _entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """For each operation how often a path from the segment's first operations leaves and re-enters the segment."""
    entry, next_entry = dict[int, int](), dict[int, int]()
    for op in range(min(uses), max(uses) + 1) if uses else ():
        producers = graph.producers[op]
        if is_inside(op):
            entry[op] = max([entry.get(producer, next_entry.get(producer, 0)) for producer in producers], default=0)
            next_entry[op] = entry[op] + 1
        else:
            next_entry[op] = max([next_entry.get(producer, 0) for producer in producers], default=0)
    return {op: entry[op] for op in uses}
