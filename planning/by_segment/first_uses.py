"""When the backward pass first needs each operation again, and at which places it enters a segment."""

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
    that nobody needs are left out; the others are in program order.
    """
    found = dict[int, int]()
    for op in sorted(operations, reverse=True):
        needed = list[int]()
        for value in graph.makes[op]:
            if value in values:
                for reader in targets.readers(graph, value):
                    if graph.gradient[reader]:
                        needed.append(reader)
                    elif reader in found:
                        needed.append(found[reader])
        if needed:
            found[op] = min(needed)
    return dict(reversed(found.items()))


def arrivals(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> list[int]:
    """Where the entries of a segment are first needed.

    Where a way leads out of a segment and back into it, through other forward operations, the segment is entered twice,
    and the cotangent of the first entry depends on the gradients of the second: one barrier over both would be a cycle,
    and copies of both would be alive while the backward pass works on what lies between. Entries that know nothing of
    each other are apart too, where the backward pass is done with one before it comes to the next.
    """
    first = dict[int, int]()
    for op, entry in _entries(graph, uses, is_inside).items():
        first[entry] = min(first.get(entry, uses[op]), uses[op])
    return _after_their_originals(uses, {*first.values(), *later_entries(graph, uses, is_inside)})


def _after_their_originals(uses: Mapping[int, int], starts: set[int]) -> list[int]:
    """Where one gradient follows another, what is computed after an arrival is needed in a later one."""
    found = sorted(starts)
    operations = sorted(uses)
    # What an operation or a later one is needed for comes after the operation itself.
    soonest = list(accumulate((uses[op] for op in reversed(operations)), min))
    for op, use in zip(operations, reversed(soonest), strict=True):
        if found[bisect_right(found, uses[op]) - 1] < op:
            insort(found, use)
    return found


def _entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """How often a way from the segment's first operations to each of its operations leaves it and comes back."""
    entry, again = dict[int, int](), dict[int, int]()
    for op in range(min(uses), max(uses) + 1) if uses else ():
        producers = graph.producers[op]
        if is_inside(op):
            entry[op] = max([entry.get(producer, again.get(producer, 0)) for producer in producers], default=0)
            again[op] = entry[op] + 1
        else:
            again[op] = max([again.get(producer, 0) for producer in producers], default=0)
    return {op: entry[op] for op in uses}
