"""Make copy groups whose copies form one batch, with estimates of the bytes that the copies free and pin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from .graph import Graph
from .plan import Batch, CopyGroup


def freed_bytes(graph: Graph, replaced: Iterable[int], inputs: Iterable[int], before: int) -> int:
    """Return the bytes that copies free: the total size of the storages that operations from `before` on no longer
    read.

    Args:
        graph: The graph of the step.
        replaced: The values whose backward readers read copies.
        inputs: The values that the copies read.
        before: The operation before which the copies are made.
    """
    read_by_copies = {graph.root[value] for value in inputs}
    distinct = dict.fromkeys(replaced)
    roots = dict.fromkeys([graph.root[value] for value in distinct])
    return sum(
        graph.sizes[root]
        for root in roots
        if graph.maker[root] >= 0
        and root not in read_by_copies
        and root not in graph.constants
        and graph.last_read[root] >= before > _last_other_reader(graph, root, distinct.keys())
        and graph.returned.isdisjoint(graph.views[root])
    )


def pinned_bytes(graph: Graph, inputs: Iterable[int], before: int) -> int:
    """Return the bytes that copies pin: the total size of those inputs that would otherwise be dead. Arguments are
    excluded, because they never die.

    Args:
        graph: The graph of the step.
        inputs: The values that the copies read.
        before: The operation before which the copies are made.
    """
    return sum(
        graph.sizes[root]
        for root in dict.fromkeys([graph.root[value] for value in inputs])
        if graph.maker[root] >= 0
        and root not in graph.constants
        and graph.returned.isdisjoint(graph.views[root])
        and graph.last_read[root] < before
    )


def _last_other_reader(graph: Graph, root: int, replaced: Set[int]) -> int:
    """Return the last operation that reads a storage, ignoring the backward readers of the `replaced` values."""
    return max(
        (
            reader
            for view in graph.views[root] or (root,)
            for reader in graph.readers[view]
            if not (view in replaced and not graph.forward[reader])
        ),
        default=-1,
    )


def unsplit_group(
    graph: Graph,
    segment: str,
    before: int,
    operations: Sequence[int],
    replaced: Sequence[int],
    gates: tuple[int, ...],
) -> CopyGroup:
    """Return a copy group with all copies in one batch. Its field `numbers` is still empty.

    Args:
        graph: The graph of the step.
        segment: The segment that is recomputed.
        before: The operation before which the copies are made.
        operations: The operations to copy, in program order.
        replaced: The values whose backward readers read the copies.
        gates: The gradient values that the copies wait for.
    """
    inputs = graph.outside_of(operations)
    return CopyGroup(
        segment=segment,
        before=before,
        batches=(Batch(tuple(operations), inputs),),
        numbers=(),
        replaces=tuple(replaced),
        gates=gates,
        freed_bytes=freed_bytes(graph, replaced, inputs, before),
        pinned_bytes=pinned_bytes(graph, inputs, before),
        extra_flops=sum(graph.flops[op] for op in operations),
    )


def with_numbers(group: CopyGroup, copy_counts: dict[int, int]) -> CopyGroup:
    """Return the group with its copies numbered. `copy_counts`, the number of copies of each operation so far, is
    updated in place."""
    for op in group.operations:
        copy_counts[op] = copy_counts.get(op, 0) + 1
    return replace(group, numbers=tuple(copy_counts[op] for op in group.operations))
