"""The benefit of copies: freed bytes, and pinned bytes, which stay live for the copies instead."""

from __future__ import annotations

from collections.abc import Iterable, Set

from ..graph import Graph


def freed_bytes(graph: Graph, replaced: Iterable[int], inputs: Iterable[int], before: int) -> int:
    """Bytes of the storages without readers from `before` on once readers of the `replaced` values read copies."""
    held = {graph.root[value] for value in inputs}
    recomputed = dict.fromkeys(replaced)
    roots = dict.fromkeys([graph.root[value] for value in recomputed])
    return sum(
        graph.sizes[root]
        for root in roots
        if graph.maker[root] >= 0
        and root not in held
        and root not in graph.constants
        and graph.last_read[root] >= before > _last_other_reader(graph, root, recomputed.keys())
        and graph.returned.isdisjoint(graph.views[root])
    )


def pinned_bytes(graph: Graph, inputs: Iterable[int], before: int) -> int:
    """Bytes of the inputs that would otherwise be dead at the operation. Arguments never die."""
    return sum(
        graph.sizes[root]
        for root in dict.fromkeys([graph.root[value] for value in inputs])
        if graph.maker[root] >= 0
        and root not in graph.constants
        and graph.returned.isdisjoint(graph.views[root])
        and graph.last_read[root] < before
    )


def _last_other_reader(graph: Graph, root: int, replaced: Set[int]) -> int:
    """The last reader of a storage; backward readers of the `replaced` values do not count."""
    return max(
        (
            reader
            for view in graph.views[root] or (root,)
            for reader in graph.readers[view]
            if not (view in replaced and not graph.forward[reader])
        ),
        default=-1,
    )
