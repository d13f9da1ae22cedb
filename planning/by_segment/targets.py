"""The values to recompute, and their segments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..graph import Graph


@dataclass(frozen=True)
class Targets:
    """The targets of a plan.

    segments: the segment of each operation that makes a target or is in a segment.
    values: the values to recompute.
    own: for some values the only readers of the copy: a segment may recompute its output for its own gradient, while
        all other readers read the original.
    """

    segments: Mapping[int, str]
    values: frozenset[int]
    own: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])

    def segment_of(self, graph: Graph, value: int) -> str:
        return self.segments[graph.maker[value]]

    def without(self, values: Collection[int]) -> Targets:
        return Targets(self.segments, self.values.difference(values), self.own)

    def readers(self, graph: Graph, value: int) -> Sequence[int]:
        """The readers of the copy of the value, in program order."""
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
    """The targets that may be copied, and are not live after the backward pass. `refused`: must not run twice."""
    values = frozenset(
        value
        for value in targets.values
        if (op := graph.maker[value]) not in refused
        and op not in graph.literals
        and graph.root[value] not in graph.lives_on
    )
    return Targets(targets.segments, values, targets.own)


def with_residuals(graph: Graph, targets: Targets, demanded: Collection[int], marked: Collection[int]) -> Targets:
    """Add residual-phase values that are computed from the `demanded` values, except for `marked` operations.

    For `y = h * h` the backward pass reads `2 * h`: a request to recompute `h` includes this value.
    """
    segments, values, sources = dict(targets.segments), set(targets.values), set(demanded) & targets.values
    for op in range(len(graph)) if sources else ():
        source = next((value for value in graph.reads[op] if value in sources), None)
        if source is None or graph.phases[op] != "residual" or op in marked:
            continue
        segments.setdefault(op, segments[graph.maker[source]])
        values.update(graph.makes[op])
        sources.update(graph.makes[op])
    return Targets(segments, frozenset(values), targets.own)


def with_views(graph: Graph, targets: Targets, marked: Collection[int]) -> Targets:
    """Add views and casts of targets, except for `marked` operations.

    If they were kept, they would pin the storage of their operand. They join the segment of their operand.
    """
    segments, values = dict(targets.segments), set(targets.values)
    for op, source in enumerate(graph.looks_at):
        if source is None or source not in values or source in targets.own:
            continue
        if not graph.forward[op] or op in marked:
            continue
        segment = segments[graph.maker[source]]
        if segments.setdefault(op, segment) == segment:
            values.update(graph.makes[op])
    return Targets(segments, frozenset(values), targets.own)
