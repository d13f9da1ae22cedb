"""What the forward pass hands to the backward pass, value by value, and why each is not recomputed; operations counted.

The data behind `-t explain{format=json}`: which values a step saves, how big they are, whom they are saved for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.recompute import Names
from ...options.selection import Selection
from ...rules.kinds import is_constant
from ...rules.names import name_of
from ...support.diagnostics import position_of
from ..copies.decide import Decision, Decisions
from ..copies.legality import why_not_recomputable, why_stays
from ..memory.labels import module_of, type_text
from ..step.copied import is_copy
from ..step.marks import mark_of
from ..step.phases import Phases
from ..step.residuals import residuals
from ..step.step import Step
from ..step.storage import value_bytes

OUTSIDE = "it belongs to no segment"
MARKED = "it is marked to be kept"
CHOSEN = "the selection saves it: a checkpoint, the policy, save or exclude"
OUTPUT = "it is an output of its segment: operations after the segment read it"

START = "recomputation starts from it"
READ = "the backward pass reads it, and it belongs to no segment"
READ_IN_SEGMENT = "the backward pass reads it, and it is an output of its segment"

BARRIER = "stablehlo.optimization_barrier"
DELAYS = frozenset({BARRIER, "recompute.token", "recompute.depend"})
SILENT = frozenset({"recompute.depend", "func.return"})


@dataclass(frozen=True)
class OperationCounts:
    """Operations by what they are for; constants, delays and the terminator are left out.

    `tokens`: what copies wait for, before and after lowering. Barriers of others are left out too.
    """

    forward: int
    gradient: int
    copies: int
    tokens: int
    update: int


@dataclass(frozen=True)
class SavedValue:
    """One forward value that the backward pass reads.

    `crosses`: other segments whose forward operations read it. `reason`: why it is saved; None where it is recomputed.
    `module` and `type`: as of `memory.labels.Buffer`.
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


def count_operations(phases: Phases) -> OperationCounts:
    """Copies and tokens are counted apart from the gradient operations, which stand beside them."""
    kinds = Counter(_kind(phases, op) for op in phases.order.operations)
    return OperationCounts(*(kinds[field.name] for field in fields(OperationCounts)))


def _kind(phases: Phases, op: Operation) -> str | None:
    """The field of `OperationCounts` that counts the operation."""
    if is_constant(op) or name_of(op) in SILENT:
        return None
    if is_copy(op):
        return "copies"
    if name_of(op) == "recompute.token":
        return "tokens"
    if name_of(op) == BARRIER:
        readers = (reader for result in op.results for reader in phases.order.readers(result))
        return "tokens" if any(is_copy(reader) for reader in readers) else None
    return "forward" if phases.is_forward(op) else phases.phase[op]


def saved_values(phases: Phases, decided: Decisions, selection: Selection) -> tuple[SavedValue, ...]:
    """Every forward value that the backward pass reads, in program order."""
    step = decided.step
    decision_of = {op: decision for decision in decided.decisions for op in decision.operations}
    replaced = {value for d in decided.decisions if d.recomputed for group in d.groups for value in group.replaces}
    served = set(step.numbered.values_of(replaced))
    return tuple(
        _saved_value(step, residual.value, decision_of, decided.resolved.saved, served, selection)
        for residual in residuals(phases)
    )


def _saved_value(
    step: Step,
    value: SSAValue,
    decision_of: Mapping[Operation, Decision],
    saved: frozenset[SSAValue],
    served: Iterable[SSAValue],
    selection: Selection,
) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    decision = decision_of.get(op)
    segment = decision.segment if decision else ""
    readers = (reader for reader in step.phases.order.readers(value) if step.phases.is_forward(reader))
    read_by = dict.fromkeys(other.segment for reader in readers if (other := decision_of.get(reader)))
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(op),
        position=position_of(op),
        segment=segment,
        bytes=value_bytes(value),
        crosses=tuple(name for name in read_by if name and name != segment),
        reason=None if value in served else _why_held(step, value, op, decision, saved, selection),
        module=module_of(op),
        type=type_text(value),
    )


def still_saved(phases: Phases, kept: Mapping[str, str]) -> tuple[SavedValue, ...]:
    """Every forward value that the backward pass of a rewritten step reads, in program order.

    kept: The reasons of the segments that are not recomputed.
    """
    return tuple(_still_saved(phases, residual.value, kept) for residual in residuals(phases))


def _still_saved(phases: Phases, value: SSAValue, kept: Mapping[str, str]) -> SavedValue:
    op = value.owner
    assert isinstance(op, Operation), "residuals are results of operations"
    stated = op.attributes.get(Names.SEGMENT)
    segment = stated.data if isinstance(stated, StringAttr) else ""
    readers = [reader for reader in phases.order.readers(value) if not phases.is_forward(reader)]
    if all(is_copy(reader) or name_of(reader) in DELAYS for reader in readers):
        reason = START
    else:
        reason = kept.get(segment) or (READ_IN_SEGMENT if segment else READ)
    return SavedValue(
        value=f"%{value.name_hint}" if value.name_hint else "",
        operation=name_of(op),
        position=position_of(op),
        segment=segment,
        bytes=value_bytes(value),
        crosses=(),
        reason=reason,
        module=module_of(op),
        type=type_text(value),
    )


def _why_held(
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
    # What is inside of a recomputed segment, and read, has a copy: this one is not inside.
    return OUTPUT
