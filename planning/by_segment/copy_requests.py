"""List the copy requests: the positions in the backward pass where values of a segment must be copied, and the
operations to copy there. The outputs of a segment are the values that later forward operations read. All other values
of the segment form its inside.

There is one request for each entry of the backward pass into a segment. The inside and the outputs of a segment are
copied together, unless the backward pass enters other segments between the first use of the outputs and the first use
of the inside. In this case the inside has a separate, later request, so that its copies are not live while the other
segments are differentiated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..graph import Graph
from .plan_targets import Targets
from .segment_arrivals import arrivals, first_uses


@dataclass(frozen=True)
class CopyRequest:
    """A position in the backward pass where copies are needed.

    Attributes:
        before: The operation before which the copies are needed.
        rank: The sort key among requests with the same `before`.
        segment: The segment of the copies.
        operations: The operations to copy; empty if `reads_outputs` is true.
        reads_outputs: Whether the outputs that the operation `before` reads are to be copied.
    """

    before: int
    rank: int
    segment: str
    operations: tuple[int, ...]
    reads_outputs: bool = False


def copy_requests(graph: Graph, targets: Targets, outputs: frozenset[int], copies: int) -> list[CopyRequest]:
    """Return one request for each arrival at each segment, and one for each operation that reads outputs, in program
    order.

    Args:
        graph: The graph of the step.
        targets: The values to recompute.
        outputs: The targets that are segment outputs (`outputs_of`).
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
    """Return one request for each *arrival*, a position where the backward pass enters the segment.

    Each operation is copied at the first arrival that needs it. `uses`: the first use of each operation.
    """
    starts = arrivals(graph, uses, lambda op: is_part_of(targets.segments.get(op), segment))
    parts: dict[int, list[int]] = {start: [] for start in starts}
    for op, use in uses.items():
        parts[starts[bisect_right(starts, use) - 1]].append(op)
    return [CopyRequest(start, rank, segment, tuple(operations)) for start, operations in parts.items()]
