"""What each segment of a step saves for the backward pass, in bytes: as it is, and as it is once a plan is carried out.

A storage counts that an operation of the segment makes in the forward pass, and that a gradient operation, or a copy in
the backward pass, reads, through any view. What comes from constants alone costs nothing, and what the step returns is
no temporary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..graph import Graph
from ..plan import Plan
from ..rewriting import as_graph, carried_out


def saved_storages(graph: Graph, operations: Iterable[int]) -> frozenset[int]:
    """Of what these forward operations make, the storages that are saved, by their owners."""
    free = graph.constants | {graph.root[value] for value in graph.returned}
    return frozenset(
        value
        for op in operations
        for value in graph.makes[op]
        if graph.root[value] == value and value not in free and is_read_by_gradient(graph, value)
    )


def is_read_by_gradient(graph: Graph, storage: int) -> bool:
    return any(graph.gradient_readers[view] for view in graph.views[storage])


def saved_after(graph: Graph, plan: Plan, operations: Iterable[int]) -> frozenset[int]:
    """The same of the graph with the plan's copies; values have the numbers of the graph."""
    program = carried_out(graph, plan, ordered=False)
    members = set(operations)
    originals = [at for at, one in enumerate(program.operations) if not one.is_new and one.origin in members]
    return saved_storages(as_graph(graph, program), originals)


def bytes_of(graph: Graph, storages: Iterable[int]) -> int:
    return sum(graph.sizes[storage] for storage in storages)


def saved_bytes(graph: Graph, segments: Mapping[str, Iterable[int]], plan: Plan | None = None) -> dict[str, int]:
    """Of each segment, given as its operations."""
    if plan is not None and plan.copies:
        return _bytes_after(graph, segments, plan)
    return {name: bytes_of(graph, saved_storages(graph, operations)) for name, operations in segments.items()}


def _bytes_after(graph: Graph, segments: Mapping[str, Iterable[int]], plan: Plan) -> dict[str, int]:
    listed = {name: frozenset(operations) for name, operations in segments.items()}
    found = saved_after(graph, plan, frozenset[int]().union(*listed.values()))
    return {
        name: bytes_of(graph, (one for one in found if graph.maker[one] in operations))
        for name, operations in listed.items()
    }
