"""Write marks that are decided for segments or chosen under budgets, and report the segments that are skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from ...analysis.copies.decided_marks import DecidedMark, MarkSource, decided_marks
from ...analysis.copies.decisions import Decision, SegmentDecisions
from ...analysis.step.marks import ChosenMark, explicit_mark
from ...analysis.step.step import Step
from ...dialects.mark_kind import MarkKind
from ...dialects.names import Names
from ...dialects.result_marks import decided_mark
from ...options.selection import Selection
from ...planning.skip_reason import frees_nothing
from ...support.interface import interface_wording
from ...support.operations import name_of
from ...support.remarks import Remark
from ..per_device.outline import is_stand_in
from .kept_dependents import demanded_values, keep_dependents

MAX_LISTED_SEGMENTS = 3
"""The maximum number of segments that a remark lists by name."""


_UNIT = UnitAttr()


def decision_remarks(function: FuncOp, decided: SegmentDecisions, selection: Selection) -> Iterator[Remark]:
    """Yield a remark for each skipped segment, and for each part of the selection that has no effect."""
    if not decided.resolved.members and not any(explicit_mark(op) for op in function.walk()):
        yield Remark(function, _no_segments(selection))
    remarks = chain(
        decided.resolved.remarks,
        _remarks_on_skipped(decided.decisions),
        _remarks_on_crossing_values(decided, selection),
    )
    yield from (remark for remark in remarks if not is_stand_in(remark.operation))


def write_chosen_marks(step: Step, marks: Mapping[Operation, ChosenMark]) -> None:
    """Write the chosen marks of a step. Values that would be recomputed only because they depend on marked values are
    marked as kept."""
    requested = demanded_values(step)
    for op, mark in marks.items():
        if mark.segment is not None:
            op.attributes[Names.SEGMENT] = StringAttr(mark.segment)
        if mark.recomputed is not None:
            op.attributes[Names.RECOMPUTE] = decided_mark(mark.recomputed)
    keep_dependents(step, requested)


def remove_segments(operations: Iterable[Operation]) -> None:
    """Remove the segment attribute of operations whose segment is not selected."""
    for op in operations:
        op.attributes.pop(Names.SEGMENT, None)


def write_decisions(decided: SegmentDecisions) -> None:
    """Write the decisions on segments as marks. Values that would be recomputed only because they depend on marked
    values are marked as kept."""
    requested = demanded_values(decided.step)
    write_marks(decided)
    keep_dependents(decided.step, requested)


def write_marks(decided: SegmentDecisions) -> None:
    """Write the decisions to the operations as marks."""
    for op, attributes in marked_attributes(decided).items():
        op.attributes = attributes


def marked_attributes(decided: SegmentDecisions) -> dict[Operation, dict[str, Attribute]]:
    """Return the new attributes, including marks, of each operation to mark; the operations stay unchanged.

    Explicit marks of the user take precedence over decisions, and decisions take precedence over an offloading policy.
    """
    marked = {
        mark.operation: _attributes_of(mark)
        for mark in decided_marks(decided)
        if mark.source is MarkSource.REFUSED_PREFERENCE or not is_stand_in(mark.operation)
    }
    for value in decided.resolved.offloaded:
        op = value.owner
        if not isinstance(op, Operation) or explicit_mark(op) is not None:
            continue
        attributes = marked.setdefault(op, dict(op.attributes))
        if attributes.get(Names.RECOMPUTE) == op.attributes.get(Names.RECOMPUTE):
            attributes[Names.RECOMPUTE] = StringAttr(MarkKind.OFFLOAD.value)
    return marked


def _no_segments(selection: Selection) -> str:
    if selection.checkpoints is not None:
        return "no segments: no checkpoint cuts the forward pass"
    if selection.segments == "none":
        return "no segments: segments=none selects only marked operations, and none is marked"
    passes = "; the attribute recompute.segment defines segments, and recompute-plan needs no names"
    return f"no segments: the locations name no scope (see jax.named_scope){interface_wording(passes, '')}"


def _remarks_on_crossing_values(decided: SegmentDecisions, selection: Selection) -> Iterable[Remark]:
    """Yield a remark for each value that is saved only because operations of a later segment read it.

    Such a value is not a checkpoint, and might not have to be saved if the checkpoints were chosen differently.
    """
    for decision in decided.decisions if selection.checkpoints is not None else ():
        for op in decision.outputs if decision.recomputed else ():
            if not any(result in decided.resolved.saved for result in op.results):
                saved = f"{name_of(op)} of segment '{decision.segment}' is saved"
                reason = f"{saved}: it is not a checkpoint, but operations of another segment read it"
                yield Remark(op, reason, segments=(decision.segment,))


def _attributes_of(mark: DecidedMark) -> dict[str, Attribute]:
    """Return the attributes of the marked operation, including the mark."""
    op = mark.operation
    attributes = dict(mark.operation.attributes)
    if mark.source is MarkSource.REFUSED_PREFERENCE:
        attributes[Names.RECOMPUTE] = decided_mark([False])
        return attributes
    if mark.segment:
        attributes[Names.SEGMENT] = StringAttr(mark.segment)
    if not mark.recomputed:
        attributes[Names.CHECKPOINT] = _UNIT
    elif mark.source is MarkSource.DECISION:
        attributes[Names.RECOMPUTE] = decided_mark([result in mark.recomputed for result in op.results])
        attributes.pop(Names.CHECKPOINT, None)
    return attributes


def _remarks_on_skipped(decisions: Iterable[Decision]) -> Iterator[Remark]:
    """Yield one remark for each reason for skipping segments, at the first segment to which the reason applies."""
    by_reason = dict[tuple[str, bool], list[Decision]]()
    for decision in decisions:
        if decision.reason:
            by_reason.setdefault((decision.reason, bool(decision.segment)), []).append(decision)
    for (reason, named), group in by_reason.items():
        if named:
            segments = [decision.segment for decision in group]
            yield Remark(
                group[0].first,
                f"{_subject(segments)} not recomputed: {reason}",
                segments=tuple(segments[:MAX_LISTED_SEGMENTS]),
                frees_nothing=frees_nothing(reason),
            )
        for decision in group if not named else ():
            yield Remark(
                decision.first,
                f"{name_of(decision.first)}, a preferred operation, is not recomputed: {reason}",
                frees_nothing=frees_nothing(reason),
            )


def _subject(segments: Sequence[str]) -> str:
    if len(segments) == 1:
        return f"segment '{segments[0]}' is"
    *listed, last = [f"'{segment}'" for segment in segments[:MAX_LISTED_SEGMENTS]]
    if len(segments) > MAX_LISTED_SEGMENTS:
        return f"segments {', '.join([*listed, last])} and {len(segments) - MAX_LISTED_SEGMENTS} more are"
    return f"segments {', '.join(listed)} and {last} are"
