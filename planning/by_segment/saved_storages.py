"""Compute the storages that segments save for the backward pass, and the bytes of these storages, without copies or
under a plan.

A storage is saved if a forward operation of the segment makes it, and a gradient operation or a copy in the backward
pass reads it through any view. Constants and returned values are excluded, because constants take no memory, and
returned values are not temporaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..graph import Graph
from ..plan import Plan
from ..simulate import as_graph, simulate


def saved_storages(graph: Graph, operations: Iterable[int]) -> frozenset[int]:
    """Return the storages that these forward operations save. Each storage is represented by the value that owns it."""
    free = graph.constants | {graph.root[value] for value in graph.returned}
    return frozenset(
        value
        for op in operations
        for value in graph.makes[op]
        if graph.root[value] == value and value not in free and is_read_by_gradient(graph, value)
    )


def is_read_by_gradient(graph: Graph, storage: int) -> bool:
    """Return whether a gradient operation reads the storage, through any view."""
    return any(graph.gradient_readers[view] for view in graph.views[storage])


def saved_after(graph: Graph, plan: Plan, operations: Iterable[int]) -> frozenset[int]:
    """Return the storages that segments save under a plan, as values of the original graph.

    Args:
        graph: The graph of the step.
        plan: The plan for the graph.
        operations: The forward operations of the segments.
    """
    program = simulate(graph, plan, keeps_barriers=False)
    members = set(operations)
    instructions = enumerate(program.operations)
    originals = [op for op, instruction in instructions if not instruction.is_new and instruction.origin in members]
    return saved_storages(as_graph(graph, program), originals)


def bytes_of(graph: Graph, storages: Iterable[int]) -> int:
    """Return the total bytes of the storages."""
    return sum(graph.sizes[storage] for storage in storages)


def saved_bytes(graph: Graph, segments: Mapping[str, Iterable[int]], plan: Plan | None = None) -> dict[str, int]:
    """Return the bytes that each segment saves for the backward pass.

    Args:
        graph: The graph of the step.
        segments: The operations of each segment, by its name.
        plan: The plan of the step; None for the unchanged step.
    """
    if plan is not None and plan.copies:
        return _bytes_after(graph, segments, plan)
    return {name: bytes_of(graph, saved_storages(graph, operations)) for name, operations in segments.items()}


def _bytes_after(graph: Graph, segments: Mapping[str, Iterable[int]], plan: Plan) -> dict[str, int]:
    members = {name: frozenset(operations) for name, operations in segments.items()}
    saved = saved_after(graph, plan, frozenset[int]().union(*members.values()))
    return {
        name: bytes_of(graph, (storage for storage in saved if graph.maker[storage] in operations))
        for name, operations in members.items()
    }
