"""The segments that a selection means in a step, and what it saves inside of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.names import Names
from ...options.selection import BadSelection, Selection
from ...rules.names import name_of
from ...support.diagnostics import Remark
from ...support.walk import every_operation
from ..step.copied import is_repeated_inside
from ..step.phases import Phases
from .checkpoints import segments_between
from .names import is_named, named_by
from .patterns import parse_chain, saved_by
from .policies import OFFLOADING, saves_of
from .segments import find_segments


@dataclass(frozen=True)
class Resolved:
    """`members`: the operations of each segment, in program order. `saved`: what is kept, though it is inside.

    `offloaded` is the part of it that may be moved to the host. `skipped`: segments that the user leaves alone.
    """

    members: Mapping[str, tuple[Operation, ...]]
    skipped: frozenset[str]
    saved: frozenset[SSAValue]
    offloaded: frozenset[SSAValue]
    remarks: tuple[Remark, ...]


def resolve(phases: Phases, selection: Selection, given: Mapping[Operation, str] | None = None) -> Resolved:
    """Find the segments and what is saved inside of them. Raises `BadSelection`.

    `given`: the segments of the operations, in place of those that the selection finds.
    """
    kept, remarks = frozenset[SSAValue](), tuple[Remark, ...]()
    if given is not None:
        segment_of = given
    elif selection.checkpoints is not None:
        cut = segments_between(phases, selection.checkpoints)
        segment_of, kept, remarks = cut.segment, cut.kept, cut.remarks
    else:
        segment_of = find_segments(phases, selection.segments)
    members = _grouped(_members(segment_of), 0 if given is not None else selection.segment_count)
    saved = {op for operations in members.values() for op in _saved(operations, selection)}
    # What is repeated iteration by iteration is not copied as a whole besides.
    saved |= {op for op in segment_of if is_repeated_inside(op)}
    values = frozenset(value for op in saved for value in op.results)
    return Resolved(
        members=members,
        skipped=_skipped(tuple(members), selection.skip),
        saved=values | kept,
        offloaded=values if selection.policy in OFFLOADING else frozenset(),
        remarks=(*remarks, *_unmatched(phases, members, selection), *_not_heard(phases)),
    )


def _members(segment_of: Mapping[Operation, str]) -> dict[str, tuple[Operation, ...]]:
    found = dict[str, list[Operation]]()
    for op, segment in segment_of.items():
        found.setdefault(segment, []).append(op)
    return {segment: tuple(operations) for segment, operations in found.items()}


def _grouped(members: dict[str, tuple[Operation, ...]], count: int) -> dict[str, tuple[Operation, ...]]:
    """The segments in program order, in so many groups of nearly equal size. Raises `BadSelection`."""
    if not count:
        return members
    if not 0 < count <= len(members):
        there = f"{len(members)} segments: {', '.join(members)}" if members else "a forward pass without names"
        raise BadSelection(f"{count} segments cannot be made of {there}")
    names = list(members)
    bounds = [round(index * len(names) / count) for index in range(count + 1)]
    groups = [names[start:end] for start, end in pairwise(bounds)]
    return {_range(group): tuple(op for name in group for op in members[name]) for group in groups}


def _range(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"


def _skipped(names: Sequence[str], numbers: Sequence[int]) -> frozenset[str]:
    for number in numbers:
        if not 0 <= number < len(names):
            known = f"the {len(names)} are numbered from 0: {', '.join(names)}"
            raise BadSelection(f"there is no segment {number} to skip; {known}")
    return frozenset(names[number] for number in numbers)


def _saved(operations: Sequence[Operation], selection: Selection) -> Iterator[Operation]:
    policy = saves_of(selection)
    yield from (op for op in operations if policy(op, selection.names) or is_named(op, selection.save))
    for text in selection.exclude:
        yield from saved_by(parse_chain(text), operations)


def _not_heard(phases: Phases) -> Iterator[Remark]:
    """Segments and marks inside of what is copied as a whole or not at all, such as a loop."""
    for op in phases.order.operations:
        if not op.regions or not phases.is_forward(op):
            continue
        inside = every_operation(op)[1:]
        quiet = is_repeated_inside(op)
        segment = next((one.attributes[Names.SEGMENT] for one in inside if Names.SEGMENT in one.attributes), None)
        if isinstance(segment, StringAttr) and Names.SEGMENT not in op.attributes and not quiet:
            yield Remark(op, INSIDE.format(segment=segment.data, holder=name_of(op)))
        marked = next((one for one in inside if Names.RECOMPUTE in one.attributes), None)
        if marked is not None and Names.RECOMPUTE not in op.attributes and not quiet:
            yield Remark(marked, MARK_INSIDE.format(marked=name_of(marked), holder=name_of(op)))


INSIDE = (
    "segment '{segment}' stands inside of {holder}, and is not recomputed: what is inside of a loop is left as it is; "
    "make the segment of the whole loop"
)


MARK_INSIDE = (
    "the mark on {marked} is not heard inside of {holder}, which is computed again or kept as a whole: mark the whole"
)


def _unmatched(phases: Phases, members: Mapping[str, Sequence[Operation]], selection: Selection) -> Iterator[Remark]:
    """Patterns that match nothing: they are said, and the rest of the request works."""
    first = phases.order.operations[0]
    inside = [op for operations in members.values() for op in operations]
    for option, names in (("names", selection.names), ("save", selection.save)):
        for name, operations in named_by(inside, names).items() if names else ():
            if not operations:
                yield Remark(first, f"{option}={name} matches no operation of a segment, and saves nothing")
    for text in selection.exclude:
        if not any(saved_by(parse_chain(text), operations) for operations in members.values()):
            yield Remark(first, f"exclude pattern '{text}' matches nowhere, and saves nothing")
