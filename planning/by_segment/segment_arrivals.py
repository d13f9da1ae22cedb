"""Find the arrivals at a segment: the positions where the backward pass first uses a copy after it enters the segment.

The backward pass enters a segment several times in two cases. Either a data-flow path leaves the segment and returns to
it, or the segment consists of independent parts of the same kind, such as one layer that is applied to two inputs.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import accumulate

from ..graph import NO_MAKER, Graph
from .plan_targets import Targets


def later_entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> Iterator[int]:
    """Yield the first use of each further entry into a segment. A further entry begins after the last use of all
    earlier entries.

    A connected part of the segment counts as a further entry only if it has the same operation names as the first part.
    All other parts belong to the same entry as the first part.

    Args:
        graph: The graph of the step.
        uses: The first use of each operation whose copy is needed.
        is_inside: Whether an operation is in the segment.
    """
    entry, used_up = Counter[str](), -1
    for part in sorted(_components(graph, uses, is_inside), key=lambda part: min(map(uses.__getitem__, part))):
        start = min(uses[op] for op in part)
        names = Counter(graph.names[op] for op in part)
        if used_up == -1:
            entry = names
        elif names == entry and start > used_up:
            yield start
        used_up = max(used_up, _last_gradient_read(graph, part))


def _components(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> Iterable[list[int]]:
    """Return the connected components of the operations in `uses`."""
    leader = _leaders(graph, uses, is_inside)
    parts = dict[int, list[int]]()
    for op in uses:
        parts.setdefault(_leader(leader, op), []).append(op)
    return parts.values()


def _leaders(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """Return a union-find forest of the operations inside the segment, as the parent of each operation. A root is its
    own parent.

    A value of another segment connects the operations that read it. Arguments do not connect operations, because all
    entries read the same weights.
    """
    leader, reader = dict[int, int](), dict[int, int]()
    for op in range(min(uses), max(uses) + 1) if uses else ():
        if not is_inside(op):
            continue
        leader[op] = op
        for value in graph.reads[op]:
            other = graph.maker[value]
            if other != NO_MAKER:
                leader[_leader(leader, other if other in leader else reader.setdefault(value, op))] = op
    return leader


def _leader(leader: dict[int, int], op: int) -> int:
    """Return the root of the component of `op`, with path halving."""
    while (parent := leader[op]) != op:
        leader[op] = leader[parent]
        op = parent
    return op


def _last_gradient_read(graph: Graph, operations: Iterable[int]) -> int:
    readers = (graph.gradient_readers[value] for op in operations for value in graph.makes[op])
    return max((positions[-1] for positions in readers if positions), default=-1)


def first_uses(graph: Graph, targets: Targets, operations: Iterable[int], values: Collection[int]) -> dict[int, int]:
    """Return, for each operation, the first gradient operation that needs a copy of it.

    A copy is needed if a gradient operation, or the copy of another operation, reads one of the results. Operations
    whose copies are not needed are omitted; the result is in program order.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        operations: The operations that may be copied.
        values: The results that may be copied.
    """
    uses = dict[int, int]()
    for op in sorted(operations, reverse=True):
        readers = [reader for value in graph.makes[op] if value in values for reader in targets.readers(graph, value)]
        own_uses = [reader for reader in readers if graph.gradient[reader]]
        uses_of_copies = [uses[reader] for reader in readers if not graph.gradient[reader] and reader in uses]
        if own_uses or uses_of_copies:
            uses[op] = min((*own_uses, *uses_of_copies))
    return dict(reversed(uses.items()))


def arrivals(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> list[int]:
    """Return the arrivals at a segment: the positions where the backward pass first uses a copy after it enters the
    segment.

    If a data-flow path leaves a segment and returns to it through other forward operations, the backward pass enters
    the segment twice. The cotangent of the first entry then depends on the gradients of the second entry. A single
    barrier for both entries would create a cycle, and the copies of both entries would be live while the backward pass
    differentiates the operations in between. Independent entries are also separate arrivals if the backward pass
    finishes one before it reaches the next.

    Args:
        graph: The graph of the step.
        uses: The first use of each operation whose copy is needed.
        is_inside: Whether an operation is in the segment.
    """
    first = dict[int, int]()
    for op, entry in _entries(graph, uses, is_inside).items():
        first[entry] = min(first.get(entry, uses[op]), uses[op])
    return _with_feasible_arrivals(uses, {*first.values(), *later_entries(graph, uses, is_inside)})


def _with_feasible_arrivals(uses: Mapping[int, int], starts: set[int]) -> list[int]:
    """Return the sorted arrivals. If an operation would be copied before it has run, add an arrival: the earliest first
    use of this operation or of any later operation.

    This happens only in steps with several gradients in sequence.

    Args:
        uses: The first use of each operation.
        starts: The arrivals so far.
    """
    arrival_places = sorted(starts)
    operations = sorted(uses)
    # For each operation, the earliest first use of this or any later operation. This use follows the operation
    # itself.
    soonest = list(accumulate((uses[op] for op in reversed(operations)), min))
    for op, use in zip(operations, reversed(soonest), strict=True):
        if arrival_places[bisect_right(arrival_places, uses[op]) - 1] < op:
            insort(arrival_places, use)
    return arrival_places


def _entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """Return, for each operation in `uses`, the maximum number of times that a data-flow path to the operation leaves
    the segment and re-enters it."""
    entry, next_entry = dict[int, int](), dict[int, int]()
    for op in range(min(uses), max(uses) + 1) if uses else ():
        producers = graph.producers[op]
        if is_inside(op):
            entry[op] = max([entry.get(producer, next_entry.get(producer, 0)) for producer in producers], default=0)
            next_entry[op] = entry[op] + 1
        else:
            next_entry[op] = max([next_entry.get(producer, 0) for producer in producers], default=0)
    return {op: entry[op] for op in uses}
