"""What is to be recomputed, value by value, and the segments that it belongs to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..graph import Graph


@dataclass(frozen=True)
class Targets:
    """The `values` to recompute; and the segment of each operation that makes one or stands in a segment."""

    segments: Mapping[int, str]
    values: frozenset[int]

    def segment_of(self, graph: Graph, value: int) -> str:
        return self.segments[graph.maker[value]]


def outputs_of(graph: Graph, targets: Targets) -> frozenset[int]:
    """Values that a forward operation outside of their segment reads."""
    segments = targets.segments
    return frozenset(
        value
        for value in targets.values
        if any(
            graph.forward[reader] and segments.get(reader) != segments[graph.maker[value]]
            for reader in graph.readers[value]
        )
    )


def possible(graph: Graph, targets: Targets, refused: Collection[int]) -> Targets:
    """What may be copied, and would not outlive the backward pass anyway. `refused`: operations that run once."""
    values = frozenset(
        value
        for value in targets.values
        if (op := graph.maker[value]) not in refused
        and op not in graph.literals
        and graph.root[value] not in graph.lives_on
    )
    return Targets(targets.segments, values)


def with_views(graph: Graph, targets: Targets, spoken_of: Collection[int]) -> Targets:
    """Add views and casts of what is recomputed, unless something else is said of them (`spoken_of`).

    Kept, they would pin what they show. They belong to the segment of the value that they look at.
    """
    segments, values = dict(targets.segments), set(targets.values)
    for op, source in enumerate(graph.looks_at):
        if source is None or source not in values or not graph.forward[op] or op in spoken_of:
            continue
        segment = segments[graph.maker[source]]
        if segments.setdefault(op, segment) == segment:
            values.update(graph.makes[op])
    return Targets(segments, frozenset(values))
