"""What is to be recomputed, value by value, and the segments that it belongs to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..graph import Graph


@dataclass(frozen=True)
class Targets:
    """The `values` to recompute; and the segment of each operation that makes one or stands in a segment.

    Of some it is said who reads the copy (`own`), so that a segment may compute its output again for its own gradient
    while everybody else reads the one that is kept.
    """

    segments: Mapping[int, str]
    values: frozenset[int]
    own: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])

    def segment_of(self, graph: Graph, value: int) -> str:
        return self.segments[graph.maker[value]]

    def without(self, values: Collection[int]) -> Targets:
        return Targets(self.segments, self.values.difference(values), self.own)

    def readers(self, graph: Graph, value: int) -> Sequence[int]:
        """Those for whom the value is computed again, in program order."""
        if (own := self.own.get(value)) is None:
            return graph.readers[value]
        return [reader for reader in graph.readers[value] if reader in own]

    def gradient_readers(self, graph: Graph, value: int) -> Sequence[int]:
        if value not in self.own:
            return graph.gradient_readers[value]
        return [reader for reader in self.readers(graph, value) if graph.gradient[reader]]


def outputs_of(graph: Graph, targets: Targets) -> frozenset[int]:
    """Values that a forward operation outside of their segment reads."""
    segments = targets.segments
    return frozenset(
        value
        for value in targets.values
        if value not in targets.own
        and any(
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
    return Targets(targets.segments, values, targets.own)


def with_residuals(graph: Graph, targets: Targets, demanded: Collection[int], spoken_of: Collection[int]) -> Targets:
    """Add what the forward pass makes of the `demanded` values for the backward pass alone, unless something else is
    said of it.

    Of `y = h * h` the backward pass reads `2 * h`: who has `h` computed again means that.
    """
    segments, values, sources = dict(targets.segments), set(targets.values), set(demanded) & targets.values
    for op in range(len(graph)) if sources else ():
        source = next((value for value in graph.reads[op] if value in sources), None)
        if source is None or graph.phases[op] != "residual" or op in spoken_of:
            continue
        segments.setdefault(op, segments[graph.maker[source]])
        values.update(graph.makes[op])
        sources.update(graph.makes[op])
    return Targets(segments, frozenset(values), targets.own)


def with_views(graph: Graph, targets: Targets, spoken_of: Collection[int]) -> Targets:
    """Add views and casts of what is recomputed, unless something else is said of them (`spoken_of`).

    Kept, they would pin what they show. They belong to the segment of the value that they look at.
    """
    segments, values = dict(targets.segments), set(targets.values)
    for op, source in enumerate(graph.looks_at):
        if source is None or source not in values or source in targets.own:
            continue
        if not graph.forward[op] or op in spoken_of:
            continue
        segment = segments[graph.maker[source]]
        if segments.setdefault(op, segment) == segment:
            values.update(graph.makes[op])
    return Targets(segments, frozenset(values), targets.own)
