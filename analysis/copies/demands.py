"""When the backward pass asks for copies: of a segment's inside as it enters it, of outputs as it reads them.

A segment that the backward pass enters several times asks several times. A segment asks for its inside and its outputs
together, unless other segments are entered between the two: then the inside would be held all the while, and is asked
for on its own, later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..order import read_values
from ..step import Step
from .needs import arrivals, first_needs
from .units import gradient_readers
from .wanted import Wanted


@dataclass(frozen=True)
class Demand:
    """Copies that are due at `position`: of the `operations` of a segment, or of the outputs that a `reader` reads."""

    position: int
    rank: int
    segment: str
    operations: tuple[Operation, ...]
    reader: Operation | None = None


def demands(step: Step, wanted: Wanted, outputs: frozenset[SSAValue], copies: int) -> list[Demand]:
    """One for each arrival of each segment, and one for each reader of outputs; in order."""
    order = step.phases.order
    makers = {op for value in wanted.values if isinstance(op := value.owner, Operation)}
    needs = first_needs(step, makers, wanted.values)
    members = dict[str, list[Operation]]()
    for op in sorted(needs, key=order.position.__getitem__):
        members.setdefault(wanted.segments[op], []).append(op)
    inside = wanted.values - outputs
    inside_needs = {segment: first_needs(step, operations, inside) for segment, operations in members.items()}
    entered = {segment: min(found.values()) for segment, found in inside_needs.items() if found}
    entries = sorted(entered.values())
    found = list[Demand]()
    for rank, (segment, operations) in enumerate(members.items()):
        early = min(needs[op] for op in operations)
        if copies < 2 or not _others_enter(entries, early, entered.get(segment, -1)):
            due = {op: needs[op] for op in operations}
        else:
            due = inside_needs[segment]
        found.extend(_parts(step, wanted, segment, rank, due))
    for reader in {reader for value in outputs for reader in gradient_readers(step, value)}:
        segment = next(wanted.segment_of(value) for value in read_values(reader) if value in outputs)
        found.append(Demand(order.position[reader], len(members), segment, (), reader))
    return sorted(found, key=lambda demand: (demand.position, demand.rank))


def is_part_of(segment: str | None, whole: str) -> bool:
    """Whether a segment is `whole` or nested in it."""
    return segment is not None and (segment == whole or (bool(whole) and segment.startswith(f"{whole}/")))


def _others_enter(entries: Sequence[int], early: int, own: int) -> bool:
    """Whether the backward pass enters another segment after this one's outputs are needed and before its inside is."""
    return bisect_left(entries, early) < bisect_left(entries, own)


def _parts(step: Step, wanted: Wanted, segment: str, rank: int, due: Mapping[Operation, int]) -> list[Demand]:
    """Each operation is copied in the arrival in which it is needed first."""
    starts = arrivals(step, due, lambda op: is_part_of(wanted.segments.get(op), segment))
    parts: dict[int, list[Operation]] = {start: [] for start in starts}
    for op, position in due.items():
        parts[starts[bisect_right(starts, position) - 1]].append(op)
    return [Demand(start, rank, segment, tuple(operations)) for start, operations in parts.items()]
