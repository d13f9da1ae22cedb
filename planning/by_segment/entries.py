"""Independent entries of a segment, as of a layer that runs on two inputs, and the places where they are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from ..graph import OUTSIDE, Graph


def later_entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> Iterator[int]:
    """The first uses of the later entries of a segment whose earlier entries have no uses left by then.

    `uses`: the first use of each operation whose copy is needed. An entry must have the same operation names as the one
    before it: unconnected parts of one entry stay together.
    """
    entry, used_up = Counter[str](), -1
    for part in sorted(_connected(graph, uses, is_inside), key=lambda part: min(map(uses.__getitem__, part))):
        start, names = min(uses[op] for op in part), Counter(graph.names[op] for op in part)
        if used_up == -1:
            entry = names
        elif names == entry and start > used_up:
            yield start
        used_up = max(used_up, _last_read(graph, part))


def _connected(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> Iterable[list[int]]:
    """The connected components of the operations of `uses`."""
    leader = _leaders(graph, uses, is_inside)
    parts = dict[int, list[int]]()
    for op in uses:
        parts.setdefault(_leader(leader, op), []).append(op)
    return parts.values()


def _leaders(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """A union-find forest of the operations inside: the parent of each operation; a root is its own parent.

    Values of other segments connect their readers; arguments connect nothing, since all entries have the same weights.
    """
    leader, reader = dict[int, int](), dict[int, int]()
    for op in range(min(uses), max(uses) + 1) if uses else ():
        if not is_inside(op):
            continue
        leader[op] = op
        for value in graph.reads[op]:
            other = graph.maker[value]
            if other != OUTSIDE:
                leader[_leader(leader, other if other in leader else reader.setdefault(value, op))] = op
    return leader


def _leader(leader: dict[int, int], op: int) -> int:
    """The root of the component of `op`, with path halving."""
    while (parent := leader[op]) != op:
        leader[op] = leader[parent]
        op = parent
    return op


def _last_read(graph: Graph, operations: Iterable[int]) -> int:
    readers = (graph.gradient_readers[value] for op in operations for value in graph.makes[op])
    return max((positions[-1] for positions in readers if positions), default=-1)
