"""List the copy requests: the places in the backward pass where the inside or the outputs of a segment must be copied,
and the operations to copy there.

There is one request for each entry of the backward pass into a segment. The inside and the outputs of a segment are
copied together, unless the backward pass enters other segments between the first uses of the two. In this case the
inside has a later request of its own, because it would be live in between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from ...support.phase import Phase
from ..graph import NO_MAKER, Graph

# Reasons for messages: why a segment or a value is not recomputed.
FROM_CONSTANTS = "it is computed only from constants, and keeping it costs nothing"
NO_GATE = "the backward pass begins with these values, so recomputing them would free nothing"
NOT_READ_BY_GRADIENT = "no gradient operation reads a value from it"
ONLY_KEPT_READ = (
    "gradient operations read only values of it that are kept: outputs, which operations after it read, returned "
    "values, and values that are marked to be saved"
)
ALL_KEPT = (
    "every value is marked to be saved or is an output, which later operations read; the option outputs also "
    "recomputes outputs"
)
FREES_NOTHING = (NO_GATE, NOT_READ_BY_GRADIENT, ONLY_KEPT_READ, ALL_KEPT)
"""Reasons for which copies of a segment would free no memory."""
SKIPPED = "it is on the list of segments to skip"
LIVES_ON = "the function returns it, so it lives to the end anyway"
NOTHING_FREED = "nothing is saved: everything that it would recompute stays alive for other uses"


@dataclass(frozen=True)
class Targets:
    """The targets of a plan.

    Attributes:
        segments: The segment of each operation that makes a target or is in a segment.
        values: The values to recompute.
        own_readers: For some values, the only operations that read the copy: a segment may recompute its output for its
            own gradient, while all other operations read the original. If a value has no entry, any reader may read its
            copy.
    """

    segments: Mapping[int, str]
    values: frozenset[int]
    own_readers: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])

    def segment_of(self, graph: Graph, value: int) -> str:
        """Return the name of the segment of a target."""
        return self.segments[graph.maker[value]]

    def without(self, values: Collection[int]) -> Targets:
        """Return the targets without these values."""
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
    """Return the targets, except those that must not be copied and those that outlive the backward pass in any case.

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
    """Return the targets, without constant expressions that the gradient of another segment reads first.

    Segments share such values where equal operations have been merged, as in a step whose `jax.checkpoint` is merged
    back: a comparison of constants in the first block may serve the gradients of all blocks. A copy of the value would
    force the copies of its whole segment to start there. Keeping the original costs nothing.

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
    return ONLY_KEPT_READ if any(copyable.isdisjoint(graph.makes[op]) for op in read) else NOT_READ_BY_GRADIENT


def with_residuals(graph: Graph, targets: Targets, demanded: Collection[int], marked: Collection[int]) -> Targets:
    """Return the targets, extended by the values of the residual phase that are computed from demanded values.

    For example, for `y = h * h` the backward pass reads `2 * h`. A demand to recompute `h` includes this value.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        demanded: The values whose recomputation is demanded.
        marked: Operations with a mark, whose results are not added.
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
    """Return the targets, extended by their views and casts, which join the segments of their operands.

    A view that is kept would pin the storage of its operand.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        marked: Operations with a mark, whose results are not added.
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


def later_entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> Iterator[int]:
    """Yield the first use of each further entry into a segment that begins after the last use of all earlier entries.

    A connected part of the segment counts as a further entry only if it has the same operation names as the first part.
    Other parts are unconnected parts of one entry.

    Args:
        graph: The graph of the step.
        uses: The first use of each operation whose copy is needed.
        is_inside: Whether an operation is in the segment.
    """
    entry, used_up = Counter[str](), -1
    for part in sorted(_components(graph, uses, is_inside), key=lambda part: min(map(uses.__getitem__, part))):
        start = min(uses[op] for op in part)
        names = Counter(graph.names[op] for op in part)
        if used_up == -1:
            entry = names
        elif names == entry and start > used_up:
            yield start
        used_up = max(used_up, _last_gradient_read(graph, part))


def _components(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> Iterable[list[int]]:
    """Return the connected components of the operations in `uses`."""
    leader = _leaders(graph, uses, is_inside)
    parts = dict[int, list[int]]()
    for op in uses:
        parts.setdefault(_leader(leader, op), []).append(op)
    return parts.values()


def _leaders(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """Return a union-find forest of the operations inside the segment, as the parent of each operation. A root is its
    own parent.

    A value of another segment connects the operations that read it. Arguments connect nothing, because all entries read
    the same weights.
    """
    leader, reader = dict[int, int](), dict[int, int]()
    for op in range(min(uses), max(uses) + 1) if uses else ():
        if not is_inside(op):
            continue
        leader[op] = op
        for value in graph.reads[op]:
            other = graph.maker[value]
            if other != NO_MAKER:
                leader[_leader(leader, other if other in leader else reader.setdefault(value, op))] = op
    return leader


def _leader(leader: dict[int, int], op: int) -> int:
    """Return the root of the component of `op`, with path halving."""
    while (parent := leader[op]) != op:
        leader[op] = leader[parent]
        op = parent
    return op


def _last_gradient_read(graph: Graph, operations: Iterable[int]) -> int:
    readers = (graph.gradient_readers[value] for op in operations for value in graph.makes[op])
    return max((positions[-1] for positions in readers if positions), default=-1)


def first_uses(graph: Graph, targets: Targets, operations: Iterable[int], values: Collection[int]) -> dict[int, int]:
    """Return, for each operation, the first gradient operation that needs a copy of it.

    A copy is needed if a gradient operation, or the copy of another operation, reads one of the results. Operations
    whose copies are not needed are omitted; the others are in program order.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        operations: The operations that may be copied.
        values: The results that may be copied.
    """
    uses = dict[int, int]()
    for op in sorted(operations, reverse=True):
        needed = list[int]()
        for value in graph.makes[op]:
            if value in values:
                for reader in targets.readers(graph, value):
                    if graph.gradient[reader]:
                        needed.append(reader)
                    elif reader in uses:
                        needed.append(uses[reader])
        if needed:
            uses[op] = min(needed)
    return dict(reversed(uses.items()))


def arrivals(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> list[int]:
    """Return the arrivals at a segment: the positions where the backward pass first uses a copy after it enters the
    segment.

    If a data-flow path leaves a segment and returns to it through other forward operations, the backward pass enters
    the segment twice. The cotangent of the first entry then depends on the gradients of the second entry. One barrier
    over both would be a cycle, and the copies of both would be live while the backward pass differentiates the
    operations in between. Independent entries are separate as well if the backward pass finishes one before it reaches
    the next.

    Args:
        graph: The graph of the step.
        uses: The first use of each operation whose copy is needed.
        is_inside: Whether an operation is in the segment.
    """
    first = dict[int, int]()
    for op, entry in _entries(graph, uses, is_inside).items():
        first[entry] = min(first.get(entry, uses[op]), uses[op])
    return _with_feasible_arrivals(uses, {*first.values(), *later_entries(graph, uses, is_inside)})


def _with_feasible_arrivals(uses: Mapping[int, int], starts: set[int]) -> list[int]:
    """Return the sorted arrivals. Where an operation would be copied before it has run, the earliest first use of it or
    of a later operation is added.

    This happens only in steps with several gradients in sequence.

    Args:
        uses: The first use of each operation.
        starts: The arrivals so far.
    """
    arrival_places = sorted(starts)
    operations = sorted(uses)
    # For each operation, the earliest first use of it or of a later one; it follows the operation itself.
    soonest = list(accumulate((uses[op] for op in reversed(operations)), min))
    for op, use in zip(operations, reversed(soonest), strict=True):
        if arrival_places[bisect_right(arrival_places, uses[op]) - 1] < op:
            insort(arrival_places, use)
    return arrival_places


def _entries(graph: Graph, uses: Mapping[int, int], is_inside: Callable[[int], bool]) -> dict[int, int]:
    """Count, for each operation in `uses`, how often a data-flow path that leads to it leaves the segment and re-enters
    it; the maximum over all paths."""
    entry, next_entry = dict[int, int](), dict[int, int]()
    for op in range(min(uses), max(uses) + 1) if uses else ():
        producers = graph.producers[op]
        if is_inside(op):
            entry[op] = max([entry.get(producer, next_entry.get(producer, 0)) for producer in producers], default=0)
            next_entry[op] = entry[op] + 1
        else:
            next_entry[op] = max([next_entry.get(producer, 0) for producer in producers], default=0)
    return {op: entry[op] for op in uses}


@dataclass(frozen=True)
class CopyRequest:
    """A place in the backward pass where copies are needed.

    Attributes:
        before: The operation before which the copies are needed.
        rank: The sort key among requests at the same place.
        segment: The segment of the copies.
        operations: The operations to copy; empty for `reads_outputs`.
        reads_outputs: Whether the outputs that the operation `before` reads are to be copied.
    """

    before: int
    rank: int
    segment: str
    operations: tuple[int, ...]
    reads_outputs: bool = False


def copy_requests(graph: Graph, targets: Targets, outputs: frozenset[int], copies: int) -> list[CopyRequest]:
    """Return one request for each arrival at each segment, and one for each reader of outputs, in program order.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        outputs: The targets that are outputs of their segment (`outputs_of`).
        copies: The maximum number of copies of one operation. If it is 2, outputs that are needed before the inside of
            their segment are copied first.
    """
    makers = {graph.maker[value] for value in targets.values}
    uses = first_uses(graph, targets, makers, targets.values)
    members = dict[str, list[int]]()
    for op in sorted(uses):
        members.setdefault(targets.segments[op], []).append(op)
    inside = targets.values - outputs
    inside_uses = {segment: first_uses(graph, targets, operations, inside) for segment, operations in members.items()}
    entered = {segment: min(places.values()) for segment, places in inside_uses.items() if places}
    entries = sorted(entered.values())
    requests = list[CopyRequest]()
    for rank, (segment, operations) in enumerate(members.items()):
        first_use = min(uses[op] for op in operations)
        is_split = copies >= 2 and _enters_other_first(entries, first_use, entered.get(segment, -1))
        requested = inside_uses[segment] if is_split else {op: uses[op] for op in operations}
        requests.extend(_requests_by_arrival(graph, targets, segment, rank, requested))
    for reader in {reader for value in outputs for reader in graph.gradient_readers[value]}:
        segment = next(targets.segment_of(graph, value) for value in graph.reads[reader] if value in outputs)
        requests.append(CopyRequest(reader, len(members), segment, (), reads_outputs=True))
    return sorted(requests, key=lambda request: (request.before, request.rank))


def is_part_of(segment: str | None, outer: str) -> bool:
    """Return whether a segment is `outer` or nested in it."""
    return segment is not None and (segment == outer or (bool(outer) and segment.startswith(f"{outer}/")))


def _enters_other_first(entries: Sequence[int], first_use: int, own_entry: int) -> bool:
    """Return whether the backward pass enters another segment between the first use of a segment's outputs and the
    entry into the segment itself.

    Args:
        entries: The sorted positions at which the backward pass enters segments.
        first_use: The position of the first use of the segment's outputs.
        own_entry: The position at which the backward pass enters the segment itself.
    """
    return bisect_left(entries, first_use) < bisect_left(entries, own_entry)


def _requests_by_arrival(
    graph: Graph, targets: Targets, segment: str, rank: int, uses: Mapping[int, int]
) -> list[CopyRequest]:
    """Return one request for each *arrival*, a point at which the backward pass enters the segment.

    Each operation is copied at the arrival that needs it first. `uses`: the first use of each operation.
    """
    starts = arrivals(graph, uses, lambda op: is_part_of(targets.segments.get(op), segment))
    parts: dict[int, list[int]] = {start: [] for start in starts}
    for op, use in uses.items():
        parts[starts[bisect_right(starts, use) - 1]].append(op)
    return [CopyRequest(start, rank, segment, tuple(operations)) for start, operations in parts.items()]
