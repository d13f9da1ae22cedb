"""The values that a step saves for its backward pass, each with its bytes, its readers and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.names import Names
from ...options.selection import Selection
from ...support.diagnostics import position_of
from ...support.operations import name_of
from ..copies.copying import why_not_recomputable, why_stays
from ..copies.decide import Decision, Decisions
from ..step.descriptions import module_of, type_text
from ..step.marks import is_copy, mark_of
from ..step.phases import Phases
from ..step.residuals import residuals
from ..step.step import Step
from ..step.views import value_bytes
from .operation_counts import BARRIER

OUTSIDE = "it belongs to no segment"
MARKED = "it is marked to be kept"
CHOSEN = "the selection saves it: a checkpoint, the policy, save or exclude"
OUTPUT = "it is an output of its segment: operations after the segment read it"

START = "recomputation starts from it"
READ = "the backward pass reads it, and it belongs to no segment"
READ_IN_SEGMENT = "the backward pass reads it, and it is an output of its segment"

PASS_ON = frozenset({BARRIER, "sdy.sharding_constraint"})
"""Operations whose results are their operands, in order."""
DELAYS = frozenset({BARRIER, "recompute.token", "recompute.depend"})
"""Operations that only delay others."""


@dataclass(frozen=True)
class SavedValue:
    """A forward value that the backward pass reads.

    Attributes:
        value: Its SSA name; "" without one.
        operation, position: Name and source position of the operation that computes it.
        segment: The segment that contains it; "" if there is none.
        bytes: Its size.
        crosses: The other segments whose forward operations read it.
        reason: The reason that it is saved; None if it is recomputed.
        module, type: See `memory.timeline.Buffer`.
    """

    value: str
    operation: str
    position: str
    segment: str
    bytes: int
    crosses: tuple[str, ...]
    reason: str | None
    module: str = ""
    type: str = ""


def saved_values(phases: Phases, decided: Decisions, selection: Selection) -> tuple[SavedValue, ...]:
    """Return every forward value that the backward pass reads, in program order."""
    step = decided.step
    decision_of = {op: decision for decision in decided.decisions for op in decision.operations}
    replaced = {value for d in decided.decisions if d.recomputed for group in d.groups for value in group.replaces}
    recomputed = set(step.numbered.values_of(replaced))
    return tuple(
        _describe_saved(step, residual.value, decision_of, decided.resolved.saved, recomputed, selection)
        for residual in residuals(phases)
    )


def _describe_saved(
    step: Step,
    value: SSAValue,
    decision_of: Mapping[Operation, Decision],
    saved: frozenset[SSAValue],
    recomputed: Iterable[SSAValue],
    selection: Selection,
) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    decision = decision_of.get(op)
    segment = decision.segment if decision else ""
    readers = (reader for reader in step.phases.order.readers(value) if step.phases.is_forward(reader))
    read_by = dict.fromkeys(other.segment for reader in readers if (other := decision_of.get(reader)))
    crosses = tuple(name for name in read_by if name and name != segment)
    reason = None if value in recomputed else _why_saved(step, value, op, decision, saved, selection)
    return _saved_value(value, op, segment, crosses, reason)


def still_saved(phases: Phases, kept: Mapping[str, str]) -> tuple[SavedValue, ...]:
    """Return every forward value that the backward pass of a rewritten step still reads, in program order.

    `kept`: for each segment that is not recomputed, the reason.
    """
    return tuple(_describe_still_saved(phases, residual.value, kept) for residual in residuals(phases))


def _maker(value: SSAValue, op: Operation) -> Operation:
    """Return the operation that computes a value: behind barriers and sharding constraints, which only pass it on.

    `op`: the operation whose result it is; returned if an argument of the step is behind it."""
    while isinstance(value, OpResult) and name_of(op) in PASS_ON:
        value = op.operands[value.index]
        if not isinstance(value.owner, Operation):
            return op
        op = value.owner
    return op


def _describe_still_saved(phases: Phases, value: SSAValue, kept: Mapping[str, str]) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    stated = op.attributes.get(Names.SEGMENT)
    segment = stated.data if isinstance(stated, StringAttr) else ""
    readers = [reader for reader in phases.order.readers(value) if not phases.is_forward(reader)]
    if all(is_copy(reader) or name_of(reader) in DELAYS for reader in readers):
        reason = START
    else:
        reason = kept.get(segment) or (READ_IN_SEGMENT if segment else READ)
    return _saved_value(value, op, segment, (), reason)


def _saved_value(
    value: SSAValue, op: Operation, segment: str, crosses: tuple[str, ...], reason: str | None
) -> SavedValue:
    """Describe a value, a result of `op`, at the operation that computes it."""
    made_by = _maker(value, op)
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(made_by),
        position=position_of(made_by),
        segment=segment,
        bytes=value_bytes(value),
        crosses=crosses,
        reason=reason,
        module=module_of(made_by),
        type=type_text(value),
    )


def _why_saved(
    step: Step,
    value: SSAValue,
    op: Operation,
    decision: Decision | None,
    saved: frozenset[SSAValue],
    selection: Selection,
) -> str:
    mark = mark_of(value)
    if mark is not None and not mark.recomputes:
        return MARKED
    if (refused := why_not_recomputable(step, op, selection.permission)) is not None:
        return refused
    if (stays := why_stays(step, value)) is not None:
        return stays
    if decision is None:
        return OUTSIDE
    if value in saved:
        return CHOSEN
    if decision.reason is not None:
        return decision.reason
    # A value that is read inside a recomputed segment has a copy, so this value is not inside.
    return OUTPUT
