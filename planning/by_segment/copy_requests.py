"""Copy requests: the places in the backward pass where the inside or the outputs of a segment must be copied.

There is one request for each entry of the backward pass into a segment. The inside and the outputs of a segment are
copied together, unless the backward pass enters other segments between the two: the inside would be live all the time,
and has a later request of its own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..graph import Graph
from .first_uses import arrivals, first_uses
from .targets import Targets


@dataclass(frozen=True)
class CopyRequest:
    """Copies needed before the operation `before`: of the `operations` of a segment or, if `reads_outputs`, of the
    outputs that `before` reads."""

    before: int
    rank: int
    segment: str
    operations: tuple[int, ...]
    reads_outputs: bool = False


def copy_requests(graph: Graph, targets: Targets, outputs: frozenset[int], copies: int) -> list[CopyRequest]:
    """One request for each arrival at each segment, and one for each reader of outputs, in program order."""
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
        early = min(uses[op] for op in operations)
        if copies < 2 or not _others_enter(entries, early, entered.get(segment, -1)):
            due: Mapping[int, int] = {op: uses[op] for op in operations}
        else:
            due = inside_uses[segment]
        requests.extend(_by_arrival(graph, targets, segment, rank, due))
    for reader in {reader for value in outputs for reader in graph.gradient_readers[value]}:
        segment = next(targets.segment_of(graph, value) for value in graph.reads[reader] if value in outputs)
        requests.append(CopyRequest(reader, len(members), segment, (), reads_outputs=True))
    return sorted(requests, key=lambda request: (request.before, request.rank))


def is_part_of(segment: str | None, whole: str) -> bool:
    """Whether a segment is `whole` or nested in it."""
    return segment is not None and (segment == whole or (bool(whole) and segment.startswith(f"{whole}/")))


def _others_enter(entries: Sequence[int], early: int, own: int) -> bool:
    """Whether the backward pass enters another segment after the first use of the outputs and before `own`."""
    return bisect_left(entries, early) < bisect_left(entries, own)


def _by_arrival(graph: Graph, targets: Targets, segment: str, rank: int, due: Mapping[int, int]) -> list[CopyRequest]:
    """One request per arrival; each operation is copied at the arrival that needs it first."""
    starts = arrivals(graph, due, lambda op: is_part_of(targets.segments.get(op), segment))
    parts: dict[int, list[int]] = {start: [] for start in starts}
    for op, use in due.items():
        parts[starts[bisect_right(starts, use) - 1]].append(op)
    return [CopyRequest(start, rank, segment, tuple(operations)) for start, operations in parts.items()]
