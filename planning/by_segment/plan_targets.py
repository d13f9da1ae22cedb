"""The targets of a plan: the values to recompute. This module also contains the rules that add or remove targets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ...support.phase import Phase
from ..graph import Graph
from ..skip_reason import SkipReason


@dataclass(frozen=True)
class Targets:
    """The values that a plan must recompute, and the operations that may read their copies.

    Attributes:
        segments: The segment of each operation that belongs to a segment or makes a target.
        values: The values to recompute.
        own_readers: For some values, the only operations that may read the copy. For example, a segment may recompute
            its output for its own gradient, while all other operations read the original. If a value has no entry, any
            reader may read its copy.
    """

    segments: Mapping[int, str]
    values: frozenset[int]
    own_readers: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])

    def segment_of(self, graph: Graph, value: int) -> str:
        """Return the name of the segment of a target."""
        return self.segments[graph.maker[value]]

    def without(self, values: Collection[int]) -> Targets:
        """Return these targets, except the given values."""
        return Targets(self.segments, self.values.difference(values), self.own_readers)

    def readers(self, graph: Graph, value: int) -> Sequence[int]:
        """Return the operations that read the copy of the value, in program order."""
        if (own := self.own_readers.get(value)) is None:
            return graph.readers[value]
        return [reader for reader in graph.readers[value] if reader in own]

    def gradient_readers(self, graph: Graph, value: int) -> Sequence[int]:
        """Return the gradient operations that read the copy of the value, in program order."""
        if value not in self.own_readers:
            return graph.gradient_readers[value]
        return [reader for reader in self.readers(graph, value) if graph.gradient[reader]]


def outputs_of(graph: Graph, targets: Targets) -> frozenset[int]:
    """Return the outputs of segments: the targets that a forward operation outside their segment reads."""
    segments = targets.segments
    return frozenset(
        value
        for value in targets.values
        if value not in targets.own_readers
        and any(
            graph.forward[reader] and segments.get(reader) != segments[graph.maker[value]]
            for reader in graph.readers[value]
        )
    )


def copyable_targets(graph: Graph, targets: Targets, refused: Collection[int]) -> Targets:
    """Return the targets that may be copied and whose copies can free memory. Values that stay live after the backward
    pass in every plan are left out, because their copies free nothing.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        refused: Operations that must not run twice.
    """
    values = frozenset(
        value
        for value in targets.values
        if (op := graph.maker[value]) not in refused
        and op not in graph.literals
        and graph.root[value] not in graph.live_after_backward
    )
    return Targets(targets.segments, values, targets.own_readers)


def without_early_constants(graph: Graph, targets: Targets) -> Targets:
    """Return the targets without the constant expressions whose first gradient reader belongs to another segment.

    Segments share such values if equal operations have been merged, for example if the copies of `jax.checkpoint` have
    been merged with their originals. A comparison of constants in the first block may then serve the gradients of all
    blocks. A copy of such a value would force the copies of its whole segment to start at the first of these gradients.
    Keeping the original takes no memory.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
    """
    reads = sorted(
        (readers[0], targets.segment_of(graph, value))
        for value in targets.values - graph.constants
        if (readers := targets.gradient_readers(graph, value))
    )
    first = dict[str, int]()
    for place, segment in reads:
        first.setdefault(segment, place)

    def is_early(value: int) -> bool:
        readers = targets.gradient_readers(graph, value)
        if not readers:
            return False
        start = first.get(targets.segment_of(graph, value), -1)
        at = bisect_left(reads, (readers[0], ""))
        return at < len(reads) and reads[at][0] < start

    return targets.without([value for value in targets.values & graph.constants if is_early(value)])


def with_residuals(graph: Graph, targets: Targets, demanded: Collection[int], marked: Collection[int]) -> Targets:
    """Return the targets, extended by the values of the residual phase that are computed from demanded values.

    For example, for `y = h * h` the backward pass reads `2 * h`. A demand to recompute `h` includes this value.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        demanded: The values whose recomputation is demanded.
        marked: Operations with a mark. Their results are not added.
    """
    segments = dict(targets.segments)
    values = set(targets.values)
    sources = set(demanded) & targets.values
    for op in range(len(graph)) if sources else ():
        source = next((value for value in graph.reads[op] if value in sources), None)
        if source is None or graph.phases[op] != Phase.RESIDUAL or op in marked:
            continue
        segments.setdefault(op, segments[graph.maker[source]])
        values.update(graph.makes[op])
        sources.update(graph.makes[op])
    return Targets(segments, frozenset(values), targets.own_readers)


def targets_with_views(graph: Graph, targets: Targets, marked: Collection[int]) -> Targets:
    """Return the targets together with their views and casts. Views and casts join the segments of their operands.

    A view that is kept would pin the storage of its operand.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        marked: Operations with a mark. Their results are not added.
    """
    segments = dict(targets.segments)
    values = set(targets.values)
    for op, source in enumerate(graph.viewed):
        if source is None or source not in values or source in targets.own_readers:
            continue
        if not graph.forward[op] or op in marked:
            continue
        segment = segments[graph.maker[source]]
        if segments.setdefault(op, segment) == segment:
            values.update(graph.makes[op])
    return Targets(segments, frozenset(values), targets.own_readers)


def why_no_copies(graph: Graph, targets: Targets, segment: str, refused: Collection[int]) -> str:
    """Return the reason why no target of a segment is copied.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        segment: The name of the segment.
        refused: Operations that must not run twice.
    """
    operations = (op for op, name in targets.segments.items() if name == segment)
    read = [op for op in operations if any(graph.gradient_readers[value] for value in graph.makes[op])]
    refused_read = [op for op in read if op in refused and not targets.values.isdisjoint(graph.makes[op])]
    if refused_read:
        names = " and ".join(dict.fromkeys(graph.names[op] for op in refused_read))
        reason = graph.effects[refused_read[0]]
        return f"gradient operations read results of {names}, which must not run twice: {reason}"
    copyable = copyable_targets(graph, targets, refused).values
    read_values = {value for op in read for value in graph.makes[op] if graph.gradient_readers[value]}
    return SkipReason.NOT_READ_BY_GRADIENT if read_values <= copyable else SkipReason.ONLY_KEPT_READ
