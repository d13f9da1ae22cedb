"""recompute-take-marks: convert marks, which a frontend writes as calls, to attributes of the marked operations.

    %1 = stablehlo.tanh %0
    %2 = stablehlo.custom_call @recompute.save(%1)
    %3 = stablehlo.custom_call @recompute.name(%2) {backend_config = "hidden"}
    %4 = stablehlo.multiply %3, %3

becomes

    %1 = stablehlo.tanh %0 {recompute.recompute = "must_save", recompute.name = "hidden"}
    %4 = stablehlo.multiply %1, %1

Each of these calls (`recompute.save`, `recompute.again`, `recompute.offload`, `recompute.name`) returns its operand. A
mark on an argument of a private function applies to the corresponding operand of each call of the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..analysis.step.order import functions_of
from ..dialects.mark_calls import CHECKPOINTS, MARK_KIND_OF, NAME, is_mark, is_named_as_mark, name_in, why_malformed
from ..dialects.mark_kind import MarkKind
from ..dialects.names import Names
from ..dialects.stablehlo.custom_call import CustomCallOp
from ..support.diagnostics import Refusal, position_of
from ..support.operations import every_operation
from ..support.remarks import Remark, Topic, tell
from .attributes.write_attributes import add_checkpoints, add_names, mark_result

_NOT_MOVED = (
    "'offload' only saves the value: offload=marked would also move it to the host; the attribute stays for other tools"
)


@dataclass(frozen=True)
class ImportedMarks:
    """The number of marks that became attributes, and one remark for each reason why a mark has no effect."""

    marks: int
    remarks: tuple[Remark, ...]


def take_marks(module: ModuleOp) -> ImportedMarks:
    """Replace all calls that mark values with attributes, in place.

    Raises:
        Refusal: A mark is unknown or malformed.
    """
    marks = [op for op in every_operation(module) if is_named_as_mark(op)]
    if not marks:
        return ImportedMarks(0, ())
    for mark in marks:
        if (reason := why_malformed(mark)) is not None:
            raise Refusal(mark, reason)
    definitions = _Definitions.of(module)
    remarks, effective = dict[str, Remark](), set[str]()
    checkpoints = list[str]()
    for mark in marks:
        if _is_checkpoint(mark):
            names, reasons = _name_checkpoints(mark, definitions, len(checkpoints))
            checkpoints += names
        else:
            reasons = _write_mark(mark, definitions)
        if not reasons:
            effective.add(position_of(mark))
        for reason in reasons:
            remarks.setdefault(reason, Remark(mark, reason, topic=Topic.NO_EFFECT))
        if _is_offload(mark):
            remarks.setdefault(_NOT_MOVED, Remark(mark, _NOT_MOVED, topic=Topic.NOT_MOVED))
    # A source line may mark a value in each layer. The line has an effect if one of these marks has an effect.
    for reason, remark in remarks.items():
        if remark.topic is Topic.NO_EFFECT and position_of(remark.operation) in effective:
            remarks[reason] = replace(remark, topic=Topic.OTHER)
    for function in functions_of(module) if any(map(_is_checkpoint, marks)) else ():
        add_checkpoints(function, checkpoints)
    for mark in marks:
        mark.results[0].replace_all_uses_with(mark.operands[0])
        Rewriter.erase_op(mark)
    return ImportedMarks(len(marks), tuple(remarks.values()))


def _is_checkpoint(mark: CustomCallOp) -> bool:
    return mark.call_target_name.data == CHECKPOINTS


def _is_offload(mark: CustomCallOp) -> bool:
    return MARK_KIND_OF.get(mark.call_target_name.data) is MarkKind.OFFLOAD


def _write_mark(mark: CustomCallOp, definitions: _Definitions) -> list[str]:
    """Write a mark on the operations that define the marked value. Return the reasons if the mark has no effect."""
    target = mark.call_target_name.data
    resolution = definitions.resolve(mark.operands[0])
    for definition in resolution.results:
        if target == NAME:
            add_names(definition.op, [name_in(mark)])
        else:
            mark_result(definition, StringAttr(MARK_KIND_OF[target].value))
    mark_name = target.removeprefix(Names.PREFIX)
    return [f"'{mark_name}' has no effect here: {reason}" for reason in resolution.reasons]


def _name_checkpoints(mark: CustomCallOp, definitions: _Definitions, earlier: int) -> tuple[list[str], list[str]]:
    """Write names on the operations that define the unnamed checkpoints of a mark.

    Args:
        mark: The mark. Its string lists named checkpoints, and its operands after the first are unnamed checkpoints.
        definitions: The definitions of values.
        earlier: The number of checkpoints of earlier marks; unnamed checkpoints are numbered from there.

    Returns:
        The names of the checkpoints, and the reasons that values are not checkpoints.
    """
    names = [name for name in name_in(mark).split(",") if name]
    reasons = list[str]()
    for value in mark.operands[1:]:
        resolution = definitions.resolve(value)
        name = f"checkpoint@{earlier + len(names)}"
        for definition in resolution.results:
            add_names(definition.op, [name])
        if resolution.results:
            names.append(name)
        reasons += [f"a checkpoint has no effect here: {reason}" for reason in resolution.reasons]
    return names, reasons


@dataclass(frozen=True)
class _Resolution:
    """The operation results to which a marked value refers, and a reason for each argument that refers to no result."""

    results: tuple[OpResult, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Definitions:
    """The operation results that define values, found through calls of functions.

    Attributes:
        calls_of: The calls of each function, by its name.
    """

    calls_of: Mapping[str, Sequence[CallOp]]

    @classmethod
    def of(cls, module: ModuleOp) -> _Definitions:
        calls_of = dict[str, list[CallOp]]()
        for op in every_operation(module):
            if isinstance(op, CallOp):
                calls_of.setdefault(op.callee.string_value(), []).append(op)
        return cls(calls_of)

    def resolve(self, value: SSAValue) -> _Resolution:
        """Find the definitions of a value. An argument of a function refers to the operands in calls of the
        function."""
        while isinstance(value, OpResult) and is_mark(value.op):
            value = value.op.operands[0]
        if isinstance(value, OpResult):
            return _Resolution((value,))
        assert isinstance(value, BlockArgument), "a value is a result or an argument"
        function = value.block.parent_op()
        if not isinstance(function, FuncOp):
            return _Resolution(
                reasons=(
                    "the value is an argument of a region, and gets a new value each time the region runs; mark a "
                    "value that is computed inside the region",
                )
            )
        calls = self.calls_of.get(function.sym_name.data, ())
        if not calls:
            return _Resolution(
                reasons=("the value is an argument of the step, and is live anyway; mark a value computed from it",)
            )
        resolutions = [self.resolve(call.operands[value.index]) for call in calls]
        return _Resolution(
            tuple([result for resolution in resolutions for result in resolution.results]),
            tuple([reason for resolution in resolutions for reason in resolution.reasons]),
        )


def without_move_remarks(remarks: Iterable[Remark], moved: bool) -> tuple[Remark, ...]:
    """Return the remarks. If marked values are moved to the host (`moved`), leave out the remarks that they are not
    moved."""
    return tuple(remark for remark in remarks if not moved or remark.topic is not Topic.NOT_MOVED)


@dataclass(frozen=True)
class TakeMarksPass(ModulePass):
    name = "recompute-take-marks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, take_marks(op).remarks)
