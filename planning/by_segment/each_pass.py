"""Repeat the copies in each backward pass, if several backward passes belong to one forward pass.

    (a0, a1), pull = vjp(f, x)      pull(g)       segment 1, segment 0
                                    pull(h)       segment 1, segment 0 again

A plan copies each segment where the backward pass first enters it, and all later readers read these copies. If the
backward pass enters a segment again after most of the other segments, the copies of the segment would stay live in
between, like the originals. Therefore the copies are repeated, as `jax.checkpoint` recomputes a block for each of its
cotangents.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..gates import gates_for
from ..graph import Graph
from ..plan import CopyGroup, Plan
from ..unsplit_groups import unsplit_group, with_numbers


def repeat_in_each_pass(graph: Graph, plan: Plan) -> Plan:
    """Add copy groups where the backward pass enters segments again. The plan is returned unchanged if the backward
    pass enters most segments only once."""
    visits = _visits(graph, plan.groups)
    if 2 * sum(len(starts) > 1 for starts in visits) <= len(visits):
        return plan
    copy_counts = dict[int, int]()
    for group in plan.groups:
        for op, number in zip(group.operations, group.numbers, strict=True):
            copy_counts[op] = max(copy_counts.get(op, 0), number)
    added = list[CopyGroup]()
    for group, starts in zip(plan.groups, visits, strict=True):
        for number, start in enumerate(starts[1:], 1):
            until = starts[number + 1] if number + 1 < len(starts) else len(graph)
            repeated = _repeat(graph, group, start, until)
            if repeated is not None:
                added.append(with_numbers(repeated, copy_counts))
    groups = sorted([*plan.groups, *added], key=lambda group: group.before)
    return replace(plan, groups=tuple(groups))


def _visits(graph: Graph, groups: Sequence[CopyGroup]) -> list[list[int]]:
    """Return, for each group, the readers at which the backward pass enters the group: the first reader, and each later
    reader for which at least half of all other groups were read after the group's previous reader."""
    reads = sorted(
        {(reader, number) for number, group in enumerate(groups) for reader in _readers(graph, group, group.replaces)}
    )
    latest = [-1] * len(groups)
    in_order = list(latest)  # The latest readers in ascending order, since `reads` is sorted by reader.
    visits, last = [list[int]() for _ in groups], -1
    for reader, number in reads:
        if number != last:
            others = len(in_order) - bisect_right(in_order, latest[number])
            if latest[number] < 0 or (others and 2 * others >= len(groups) - 1):
                visits[number].append(reader)
        del in_order[bisect_left(in_order, latest[number])]
        in_order.append(reader)
        latest[number], last = reader, number
    return visits


def _readers(graph: Graph, group: CopyGroup, values: Iterable[int]) -> set[int]:
    """Return the gradient operations that read the group's copies of these values."""
    return {reader for value in values for reader in graph.gradient_readers[value] if reader >= group.before}


def _repeat(graph: Graph, group: CopyGroup, start: int, until: int) -> CopyGroup | None:
    """Return a new group, placed before the reader `start`, with the copies that the readers from `start` on need.
    Return None if no gate delays these copies."""
    read = [value for value in group.replaces if any(reader >= start for reader in graph.gradient_readers[value])]
    needed = set(read)
    operations = list[int]()
    for op in reversed(group.operations):
        if not needed.isdisjoint(graph.makes[op]):
            operations.append(op)
            needed.update(graph.reads[op])
    operations.reverse()
    readers = {reader for reader in _readers(graph, group, read) if start <= reader < until}
    first = [value for value in read if start in graph.gradient_readers[value]]
    gates = gates_for(graph, first, readers, start)
    if not gates or not graph.outside_of(operations):
        return None
    return unsplit_group(graph, group.segment, before=start, operations=operations, replaced=read, gates=gates)
