"""recompute-mark: translate a selection into marks. `recompute-clone` applies them.

`segments=auto` or `segments=<pattern>` marks the inside of every segment that is worth recomputing:

    %1 = stablehlo.dot_general ... {recompute.segment = "block0", recompute.recompute = true}
    %2 = stablehlo.add ...         {recompute.segment = "block0", recompute.checkpoint}       // an output: kept

An explicit `recompute.recompute` on an operation stays unchanged. `true` means `"must_recompute"`, which includes the
unmarked residuals of the value: operations that only the backward pass reads. Those that a decision keeps get
`recompute.checkpoint`, so that `recompute-clone` copies exactly what was decided. Segments are flattened into such
marks first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ..analysis.copies.decided_marks import DecidedMark, MarkSource, decided_marks
from ..analysis.copies.segment_decisions import Decision, SegmentDecisions, segment_decisions
from ..analysis.request.checkpoints import with_stated_checkpoints
from ..analysis.step.marks import explicit_mark
from ..analysis.step.module_steps import numbered_steps
from ..analysis.step.step import Steps
from ..dialects.mark_kind import MarkKind
from ..dialects.names import Names
from ..dialects.result_marks import decided_mark
from ..options.pass_options import has_options
from ..options.selection import AUTO, Selection
from ..support.diagnostics import Remark, tell
from ..support.operations import name_of
from ..support.timing import part
from .calls.repeatable import mark_repeatable
from .inline_segments import inline_segments
from .outlining.nested_steps import outline_temporarily
from .per_device.outline import is_stand_in
from .phase import write_phases
from .plans.kept_dependents import demanded_values, keep_dependents
from .plans.limit_segments import StepLimits, mark_segment_budgets, selection_without_budgets
from .plans.misfits import Misfits

MAX_LISTED_SEGMENTS = 3
"""The maximum number of segments that a remark lists by name."""


_UNIT = UnitAttr()


def mark(module: ModuleOp, selection: Selection = AUTO) -> list[Remark]:
    """Flatten segments, and mark the operations to recompute according to the selection.

    Returns:
        A remark for each skipped segment, and for each part of the selection that has no effect.

    Raises:
        Refusal: There is no gradient, or the selection does not apply to the step.
    """
    inline_segments(module)
    guessed = write_phases(module, selection.phase_hint)
    mark_repeatable(module, selection.repeatable)
    selection, overridden = with_stated_checkpoints(module, selection)
    steps = numbered_steps(module)
    without_budgeted = selection_without_budgets(selection)
    demands = mark_segment_budgets(steps, selection) if selection.segment_budgets else StepLimits()
    return [*guessed, *overridden, *demands.remarks, *mark_steps(steps, without_budgeted)]


@part("mark")
def mark_steps(steps: Steps, selection: Selection) -> list[Remark]:
    """Mark the operations of flattened steps; return remarks as `mark` does.

    The graphs of the steps stay valid, since only attributes change.

    Raises:
        Refusal: The selection does not apply to any step.
    """
    remarks, misfits = list[Remark](), Misfits()
    for function, step in steps:
        if (decided := misfits.try_on(function, partial(segment_decisions, step, selection))) is not None:
            remarks += decision_remarks(function, decided, selection)
            requested = demanded_values(step)
            write_marks(decided)
            keep_dependents(step, requested)
    misfits.refuse()
    return remarks


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
    return "no segments: the locations name no scope (see jax.named_scope)"


def _remarks_on_crossing_values(decided: SegmentDecisions, selection: Selection) -> Iterable[Remark]:
    """Yield a remark for each value that is saved only because operations of a later segment read it.

    Such a value is not a checkpoint; with other checkpoints it might not have to be saved.
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
            )
        for decision in group if not named else ():
            yield Remark(
                decision.first, f"{name_of(decision.first)}, a preferred operation, is not recomputed: {reason}"
            )


def _subject(segments: Sequence[str]) -> str:
    if len(segments) == 1:
        return f"segment '{segments[0]}' is"
    *listed, last = [f"'{segment}'" for segment in segments[:MAX_LISTED_SEGMENTS]]
    if len(segments) > MAX_LISTED_SEGMENTS:
        return f"segments {', '.join([*listed, last])} and {len(segments) - MAX_LISTED_SEGMENTS} more are"
    return f"segments {', '.join(listed)} and {last} are"


@dataclass(frozen=True)
@has_options(Selection)
class MarkPass(ModulePass):
    name = "recompute-mark"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with outline_temporarily(op):
            tell(ctx, mark(op, Selection.of(self)))
