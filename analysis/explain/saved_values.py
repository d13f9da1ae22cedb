"""The values that a step saves for its backward pass, each with its bytes, its readers, and the reason to save it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.names import Names
from ...dialects.stablehlo.control import OptimizationBarrierOp
from ...options.selection import Selection
from ...support.diagnostics import position_of
from ...support.operations import name_of
from ..copies.copying import why_not_recomputable, why_stays
from ..copies.decisions import Decision, SegmentDecisions
from ..step.descriptions import module_of, module_of_stack, type_text
from ..step.marks import is_copy, mark_of
from ..step.phases import Phases
from ..step.residuals import residuals
from ..step.step import Step
from ..step.views import value_bytes

OUTSIDE = "it is outside every segment, and only values inside segments are recomputed"
NO_SEGMENTS = "the step has no segments, the parts that are recomputed: name its parts as scopes"
PLAIN_STEP = "a rewrite could recompute it, but the plain step runs"
MARKED = "it is marked to be kept"
CHOSEN = "the selection saves it, as a checkpoint or because of the policy, save or exclude"
OUTPUT = "it is an output of its segment: operations after the segment read it"

START = "recomputation starts from it"
READ = "no recomputed segment contains it"
READ_BY_LOOP = "the backward loop reads it, and recomputes other values"
READ_IN_SEGMENT = "the backward pass reads it, and it is an output of its segment"

PASS_ON = frozenset({OptimizationBarrierOp.name, "sdy.sharding_constraint"})
"""Operations whose results are their operands, in order."""
DELAYS = frozenset({OptimizationBarrierOp.name, "recompute.token", "recompute.depend"})
"""Operations that only delay other operations."""


@dataclass(frozen=True)
class SavedValue:
    """A forward value that the backward pass reads.

    Attributes:
        value: The SSA name of the value; "" if it has none.
        operation, position: Name and source position of the operation that computes the value.
        segment: The segment that contains the value; "" if the value is in no segment.
        bytes: The size.
        crosses: The segments, other than its own, whose forward operations read the value.
        reason: The reason that the value is saved; None if it is recomputed.
        module, type: As in `memory.timeline.Buffer`.
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


def saved_values(phases: Phases, decided: SegmentDecisions, selection: Selection) -> tuple[SavedValue, ...]:
    """Return every forward value that the backward pass reads, in program order."""
    decisions = _DecisionsByValue.of(decided, selection)
    return tuple(decisions.describe(residual.value) for residual in residuals(phases))


@dataclass(frozen=True)
class _DecisionsByValue:
    """The decisions about the segments of a step, by operation and by value.

    Attributes:
        step: The step.
        decision_of: The decision about the segment of each operation that belongs to a segment.
        recomputed: The values that copies replace.
        saved: The values that the selection saves.
        selection: The user's selection.
    """

    step: Step
    decision_of: Mapping[Operation, Decision]
    recomputed: frozenset[SSAValue]
    saved: frozenset[SSAValue]
    selection: Selection

    @classmethod
    def of(cls, decided: SegmentDecisions, selection: Selection) -> _DecisionsByValue:
        step = decided.step
        decision_of = {op: decision for decision in decided.decisions for op in decision.operations}
        groups = (group for decision in decided.decisions if decision.recomputed for group in decision.groups)
        replaced = {value for group in groups for value in group.replaces}
        recomputed = frozenset(step.numbered.values_of(replaced))
        return cls(step, decision_of, recomputed, decided.resolved.saved, selection)

    def describe(self, value: SSAValue) -> SavedValue:
        """Return the description of a residual: its operation, its segment, and the reason that it is saved."""
        phases, op = self.step.phases, value.owner
        assert isinstance(op, Operation), "residuals are results of operations"
        decision = self.decision_of.get(op)
        segment = decision.segment if decision else ""
        readers = (reader for reader in phases.order.readers(value) if phases.is_forward(reader))
        read_by = dict.fromkeys(other.segment for reader in readers if (other := self.decision_of.get(reader)))
        crosses = tuple(name for name in read_by if name and name != segment)
        reason = None if value in self.recomputed else self.why_saved(value, op)
        return _saved_value(value, op, segment, crosses, reason)

    def why_saved(self, value: SSAValue, op: Operation) -> str:
        """Return the reason that `value`, a result of `op`, is not recomputed."""
        mark = mark_of(value)
        if mark is not None and not mark.recomputes:
            return MARKED
        if (refused := why_not_recomputable(self.step, op, self.selection.permission)) is not None:
            return refused
        if (stays := why_stays(self.step, value)) is not None:
            return stays
        decision = self.decision_of.get(op)
        if decision is None:
            return OUTSIDE if self.decision_of else NO_SEGMENTS
        if value in self.saved:
            return CHOSEN
        if decision.reason is not None:
            return decision.reason
        # Values that are read only inside a recomputed segment have copies. This value has no copy, so it is an output.
        return OUTPUT


def still_saved(phases: Phases, reasons: Mapping[str, str]) -> tuple[SavedValue, ...]:
    """Return every forward value that the backward pass of a rewritten step still reads, in program order.

    `reasons`: the reason for each segment that is not recomputed.
    """
    return tuple(_describe_still_saved(phases, residual.value, reasons) for residual in residuals(phases))


def _maker(value: SSAValue, op: Operation) -> Operation:
    """Return the operation that computes a value, looking through barriers and sharding constraints.

    If the barriers and constraints lead to an argument of the step, return the barrier or constraint that reads it.

    `op`: the operation that defines the value.
    """
    while isinstance(value, OpResult) and name_of(op) in PASS_ON:
        value = op.operands[value.index]
        if not isinstance(value.owner, Operation):
            return op
        op = value.owner
    return op


def _describe_still_saved(phases: Phases, value: SSAValue, reasons: Mapping[str, str]) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    stated = op.attributes.get(Names.SEGMENT)
    segment = stated.data if isinstance(stated, StringAttr) else ""
    readers = [reader for reader in phases.order.readers(value) if not phases.is_forward(reader)]
    if all(is_copy(reader) or name_of(reader) in DELAYS for reader in readers):
        reason = START
    elif any(reader.regions and any(map(is_copy, reader.walk())) for reader in readers):
        reason = READ_BY_LOOP
    else:
        reason = reasons.get(segment) or (READ_IN_SEGMENT if segment else READ)
    return _saved_value(value, op, segment, (), reason)


def _saved_value(
    value: SSAValue, op: Operation, segment: str, crosses: tuple[str, ...], reason: str | None
) -> SavedValue:
    """Describe a result of `op`, with the name and position of the operation that computes it."""
    made_by = _maker(value, op)
    module = module_of_stack(value) if isinstance(value, OpResult) else ""
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(made_by),
        position=position_of(made_by),
        segment=segment,
        bytes=value_bytes(value),
        crosses=crosses,
        reason=reason,
        module=module or module_of(made_by),
        type=type_text(value),
    )
