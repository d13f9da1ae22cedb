"""recompute-take-marks: turn marks that a framework writes as calls into attributes of the marked values' operations.

    %1 = stablehlo.tanh %0
    %2 = stablehlo.custom_call @recompute.save(%1)
    %3 = stablehlo.custom_call @recompute.name(%2) {backend_config = "hidden"}
    %4 = stablehlo.multiply %3, %3

becomes

    %1 = stablehlo.tanh %0 {recompute.recompute = "must_save", recompute.name = "hidden"}
    %4 = stablehlo.multiply %1, %1

The calls, `recompute.save`, `recompute.again`, `recompute.offload` and `recompute.name`, return their operand. A mark
on an argument of a private function applies to the operands of the function's calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..analysis.request.checkpoints import add_checkpoints
from ..analysis.request.value_names import add_names
from ..analysis.step.marks import Policy, mark_result
from ..analysis.step.order import functions_of
from ..dialects.mark_calls import CHECKPOINTS, NAME, POLICY_OF, is_mark, is_named_as_mark, name_in, why_malformed
from ..dialects.names import Names
from ..dialects.stablehlo.custom_call import CustomCallOp
from ..support.diagnostics import Refusal, Remark, tell
from ..support.operations import every_operation

NOT_MOVED = "'offload' keeps the value: offload=marked moves it to the host, and its attribute stays for other tools"


@dataclass(frozen=True)
class ImportedMarks:
    """The number of marks that were turned into attributes, and remarks on them, one for each reason."""

    marks: int
    remarks: tuple[Remark, ...]


def take_marks(module: ModuleOp) -> ImportedMarks:
    """Turn the calls into attributes, in place.

    Raises:
        Refusal: A mark is unknown or malformed.
    """
    marks = [op for op in every_operation(module) if is_named_as_mark(op)]
    if not marks:
        return ImportedMarks(0, ())
    for mark in marks:
        if (reason := why_malformed(mark)) is not None:
            raise Refusal(mark, reason)
    callers = _callers(module)
    remarks, checkpoints = dict[str, Remark](), list[str]()
    for mark in marks:
        reasons = _name_checkpoints(mark, callers, checkpoints) if _is_checkpoint(mark) else _write_mark(mark, callers)
        for reason in reasons:
            remarks.setdefault(reason, Remark(mark, reason))
    for function in functions_of(module) if any(map(_is_checkpoint, marks)) else ():
        add_checkpoints(function, checkpoints)
    for mark in marks:
        mark.results[0].replace_all_uses_with(mark.operands[0])
        Rewriter.erase_op(mark)
    return ImportedMarks(len(marks), tuple(remarks.values()))


def _is_checkpoint(mark: CustomCallOp) -> bool:
    return mark.call_target_name.data == CHECKPOINTS


def _callers(module: ModuleOp) -> Mapping[str, list[CallOp]]:
    callers = dict[str, list[CallOp]]()
    for op in every_operation(module):
        if isinstance(op, CallOp):
            callers.setdefault(op.callee.string_value(), []).append(op)
    return callers


def _write_mark(mark: CustomCallOp, callers: Mapping[str, list[CallOp]]) -> Iterator[str]:
    value, target = mark.operands[0], mark.call_target_name.data
    definitions, reasons = list[SSAValue](), list[str]()
    _resolve(value, callers, definitions, reasons)
    for definition in definitions:
        assert isinstance(definition.owner, Operation), "arguments are resolved to operands of calls"
        if target == NAME:
            add_names(definition.owner, [name_in(mark)])
        else:
            mark_result(definition, StringAttr(POLICY_OF[target]))
    mark_name = target.removeprefix(Names.PREFIX)
    yield from (f"'{mark_name}' has no effect here: {reason}" for reason in reasons)
    if POLICY_OF.get(target) == Policy.OFFLOAD.value:
        yield NOT_MOVED


def _name_checkpoints(mark: CustomCallOp, callers: Mapping[str, list[CallOp]], checkpoints: list[str]) -> Iterator[str]:
    """Append the names of the checkpoints to `checkpoints`; values without a name get one."""
    checkpoints.extend(name for name in name_in(mark).split(",") if name)
    for value in mark.operands[1:]:
        definitions, reasons = list[SSAValue](), list[str]()
        _resolve(value, callers, definitions, reasons)
        name = f"checkpoint@{len(checkpoints)}"
        checkpoints.extend([name] if definitions else [])
        for definition in definitions:
            assert isinstance(definition.owner, Operation), "arguments are resolved to operands of calls"
            add_names(definition.owner, [name])
        yield from (f"a checkpoint cuts nothing here: {reason}" for reason in reasons)


def _resolve(
    value: SSAValue, callers: Mapping[str, list[CallOp]], definitions: list[SSAValue], reasons: list[str]
) -> None:
    """Append the operation results for which a marked value stands to `definitions`, or the reason for none to
    `reasons`."""
    if not isinstance(value, BlockArgument):
        if isinstance(value.owner, Operation) and is_mark(value.owner):
            _resolve(value.owner.operands[0], callers, definitions, reasons)
        else:
            definitions.append(value)
        return
    function = value.block.parent_op()
    if not isinstance(function, FuncOp):
        reasons.append("the value is an argument of a region, which has a new value in each run")
        return
    calls = callers.get(function.sym_name.data, [])
    if not calls:
        reasons.append("the value is an argument of the step, which is live anyway")
    for call in calls:
        _resolve(call.operands[value.index], callers, definitions, reasons)


def without_move_remarks(remarks: Iterable[Remark], moved: bool) -> tuple[Remark, ...]:
    """Drop the remarks on values that are not moved to the host, if `moved`."""
    return tuple(remark for remark in remarks if not moved or remark.reason != NOT_MOVED)


@dataclass(frozen=True)
class TakeMarksPass(ModulePass):
    name = "recompute-take-marks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, take_marks(op).remarks)
