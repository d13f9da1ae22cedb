"""Resolve a selection: find the segments of a step, and the values to save inside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.names import Names
from ...options.selection import BadSelection, Selection
from ...support.counted import counted
from ...support.operations import every_operation, name_of
from ...support.remarks import Remark, Topic
from ..step.marks import is_repeated_inside
from ..step.phases import Phases
from .checkpoints import segments_between
from .op_chains import operations_saved_by, parse_chain
from .policies import OFFLOADING, policy_of, why_names_unread
from .segments import find_segments
from .value_names import all_values_of_scope, is_named, matches_of


@dataclass(frozen=True)
class ResolvedSelection:
    """The segments and values to which a selection resolves.

    Attributes:
        members: The operations of each segment, in program order.
        skipped: The segments that the user excludes from recomputation.
        saved: The values inside segments that are saved.
        offloaded: The saved values that may be moved to the host.
        remarks: Remarks on the parts of the selection that have no effect.
    """

    members: Mapping[str, tuple[Operation, ...]]
    skipped: frozenset[str]
    saved: frozenset[SSAValue]
    offloaded: frozenset[SSAValue]
    remarks: tuple[Remark, ...]


def resolve(
    phases: Phases, selection: Selection, segment_of_op: Mapping[Operation, str] | None = None
) -> ResolvedSelection:
    """Find the segments and the values to save inside them.

    Args:
        phases: The phases of the step.
        selection: The user's selection.
        segment_of_op: The segment of each operation. If given, it replaces the segments that the selection describes.

    Raises:
        BadSelection: The selection does not apply to the step.
    """
    kept_values = frozenset[SSAValue]()
    remarks = tuple[Remark, ...]()
    if segment_of_op is not None:
        segment_of = segment_of_op
    elif selection.checkpoints is not None:
        cut = segments_between(phases, selection.checkpoints)
        segment_of, kept_values, remarks = cut.segment, cut.kept, cut.remarks
    else:
        segment_of = find_segments(phases, selection.segments)
    members = _join_segments(_members(segment_of), 0 if segment_of_op is not None else selection.segment_count)
    saved = {op for operations in members.values() for op in _saved_operations(operations, selection)}
    # A loop that is recomputed iteration by iteration must not also be copied as a whole.
    saved |= {op for op in segment_of if is_repeated_inside(op)}
    values = frozenset(value for op in saved for value in op.results)
    return ResolvedSelection(
        members=members,
        skipped=_skipped_segments(tuple(members), selection.skip),
        saved=values | kept_values,
        offloaded=values if selection.policy in OFFLOADING else frozenset(),
        remarks=(*remarks, *_remarks_on_unmatched(phases, members, selection), *_ignored_inside_regions(phases)),
    )


def _members(segment_of: Mapping[Operation, str]) -> dict[str, tuple[Operation, ...]]:
    operations_of = dict[str, list[Operation]]()
    for op, segment in segment_of.items():
        operations_of.setdefault(segment, []).append(op)
    return {segment: tuple(operations) for segment, operations in operations_of.items()}


def _join_segments(members: dict[str, tuple[Operation, ...]], count: int) -> dict[str, tuple[Operation, ...]]:
    """Join consecutive segments into `count` groups of nearly equal size, or return them unchanged if `count` is 0.

    Raises:
        BadSelection: There are fewer segments than groups.
    """
    if not count:
        return members
    if not 0 < count <= len(members):
        available = (
            f"{counted(len(members), 'segment')} ({', '.join(members)})" if members else "a forward pass without names"
        )
        raise BadSelection(f"cannot divide {available} into {counted(count, 'segment')}")
    names = list(members)
    bounds = [round(index * len(names) / count) for index in range(count + 1)]
    groups = [names[start:end] for start, end in pairwise(bounds)]
    return {_range(group): tuple(op for name in group for op in members[name]) for group in groups}


def _range(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"


def _skipped_segments(names: Sequence[str], numbers: Sequence[int]) -> frozenset[str]:
    for number in numbers:
        if not 0 <= number < len(names):
            raise BadSelection(f"there is no segment {number} to skip: {_numbered(names)}")
    return frozenset(names[number] for number in numbers)


def _numbered(names: Sequence[str]) -> str:
    """Return the clause of an error that lists the numbers of the segments."""
    if not names:
        return (
            "the step names no segments, and skip counts only named ones: name its parts as scopes or with "
            "recompute.segment, or mark the operations to keep with recompute.recompute = false"
        )
    if len(names) == 1:
        return f"the only segment is 0 ({names[0]})"
    return f"the segments are 0 ({names[0]}) to {len(names) - 1} ({names[-1]}), in this order: {', '.join(names)}"


def _saved_operations(operations: Sequence[Operation], selection: Selection) -> Iterator[Operation]:
    policy = policy_of(selection)
    yield from (op for op in operations if policy(op, selection.names) or is_named(op, selection.save))
    for text in selection.exclude:
        yield from operations_saved_by(parse_chain(text), operations)


def _ignored_inside_regions(phases: Phases) -> Iterator[Remark]:
    """Yield remarks on segments and marks that have no effect because they are inside an operation that is copied as a
    whole, such as a loop."""
    for op in phases.order.operations:
        if not op.regions or not phases.is_forward(op):
            continue
        inside = every_operation(op)[1:]
        repeated_inside = is_repeated_inside(op)
        segment = next((inner.attributes[Names.SEGMENT] for inner in inside if Names.SEGMENT in inner.attributes), None)
        if isinstance(segment, StringAttr) and Names.SEGMENT not in op.attributes and not repeated_inside:
            reason = INSIDE.format(segment=segment.data, holder=name_of(op))
            yield Remark(op, reason, segments=(segment.data,))
        marked = next((inner for inner in inside if Names.RECOMPUTE in inner.attributes), None)
        if marked is not None and Names.RECOMPUTE not in op.attributes and not repeated_inside:
            reason = MARK_INSIDE.format(marked=name_of(marked), holder=name_of(op))
            yield Remark(marked, reason, topic=Topic.NO_EFFECT)


INSIDE = (
    "segment '{segment}' is not recomputed: it is inside {holder}, whose operations stay unchanged; put the whole "
    "loop into the segment"
)


MARK_INSIDE = (
    "the mark on {marked} has no effect inside {holder}, because {holder} is recomputed or kept as a whole: "
    "mark {holder}"
)


def _remarks_on_unmatched(
    phases: Phases, members: Mapping[str, Sequence[Operation]], selection: Selection
) -> Iterator[Remark]:
    """Yield a remark on each name and pattern that matches nothing. The other options still apply."""
    first = phases.order.operations[0]
    function = first.parent_op() or first
    inside = [op for operations in members.values() for op in operations]
    unread = why_names_unread(selection)
    for option, names in (("names", selection.names), ("save", selection.save)):
        for name, operations in matches_of(inside, names).items() if names else ():
            if not operations:
                of_scope = all_values_of_scope(name, inside)
                hint = "" if of_scope is None else f"; for the values in this scope, write '{of_scope}'"
                unmatched = f"{option}={name} saves nothing: it matches no operation of a segment{hint}"
                reason = unmatched if unread is None or option != "names" else unread
                yield Remark(function, reason, topic=Topic.NO_EFFECT)
    for text in selection.exclude:
        if not any(operations_saved_by(parse_chain(text), operations) for operations in members.values()):
            reason = f"exclude pattern '{text}' saves nothing: it matches no operations of a segment"
            yield Remark(function, reason, topic=Topic.NO_EFFECT)
