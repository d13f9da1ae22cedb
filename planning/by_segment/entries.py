"""Entries of a segment that know nothing of each other, as of a layer run on two inputs, and when they are due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from ..graph import OUTSIDE, Graph


def later_entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> Iterator[int]:
    """Where the later entries of a segment are first needed, if all that was needed before them has been read by then.

    `uses`: for each operation whose copy is needed, where that is first. An entry needs copies of the same operations
    as the one before it: parts of one entry that happen to be unconnected stay together.
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
    """The operations of `uses`, those together that values connect."""
    leader = _leaders(graph, uses, is_inside)
    parts = dict[int, list[int]]()
    for op in uses:
        parts.setdefault(_leader(leader, op), []).append(op)
    return parts.values()


def _leaders(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """For each operation inside another one that it is connected with, up to one that leads itself.

    Values of other segments connect their readers; arguments connect nothing, since every entry has the same weights.
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
    """The operation that stands for everything connected with `op`; ways are halved for whoever asks next."""
    while (above := leader[op]) != op:
        leader[op] = leader[above]
        op = above
    return op


def _last_read(graph: Graph, operations: Iterable[int]) -> int:
    readers = (graph.gradient_readers[value] for op in operations for value in graph.makes[op])
    return max((each[-1] for each in readers if each), default=-1)
