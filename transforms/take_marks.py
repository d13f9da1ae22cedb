"""recompute-take-marks: marks that a framework writes as calls become attributes of what makes the value.

    %1 = stablehlo.tanh %0
    %2 = stablehlo.custom_call @recompute.save(%1)
    %3 = stablehlo.custom_call @recompute.name(%2) {backend_config = "hidden"}
    %4 = stablehlo.multiply %3, %3

    %1 = stablehlo.tanh %0 {recompute.recompute = "must_save", recompute.name = "hidden"}
    %4 = stablehlo.multiply %1, %1

The calls are the identity: `recompute.save`, `recompute.again`, `recompute.offload`, `recompute.name`. What is said of
an argument of a private function is said of what its calls pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ..analysis.request.names import add_names
from ..analysis.request.stated_checkpoints import state_checkpoints
from ..analysis.step.functions import functions_of
from ..analysis.step.marks import Policy, say
from ..dialects.context import tell
from ..dialects.marks import CHECKPOINTS, NAME, POLICY_OF, is_mark, is_named_as_mark, name_in, why_malformed
from ..dialects.recompute import Names
from ..dialects.stablehlo.custom_call import CustomCallOp
from ..support.diagnostics import Refusal, Remark
from ..support.walk import every_operation

NOT_MOVED = "'offload' keeps the value: offload=marked moves it to the host, and an attribute is on it for whoever can"


@dataclass(frozen=True)
class Taken:
    """How many marks there were, and what is to be said of them, once for each reason."""

    marks: int
    remarks: tuple[Remark, ...]


def take_marks(module: ModuleOp) -> Taken:
    """Turn the calls into attributes, in place. Raises `Refusal` for a mark that nobody knows, or that is malformed."""
    found = [op for op in every_operation(module) if is_named_as_mark(op)]
    if not found:
        return Taken(0, ())
    for mark in found:
        if (reason := why_malformed(mark)) is not None:
            raise Refusal(mark, reason)
    callers = _callers(module)
    remarks, cuts = dict[str, Remark](), list[str]()
    for mark in found:
        reasons = _take_checkpoints(mark, callers, cuts) if _cuts(mark) else _take(mark, callers)
        for reason in reasons:
            remarks.setdefault(reason, Remark(mark, reason))
    for function in functions_of(module) if any(map(_cuts, found)) else ():
        state_checkpoints(function, cuts)
    for mark in found:
        mark.results[0].replace_all_uses_with(mark.operands[0])
        mark.detach()
        mark.erase()
    return Taken(len(found), tuple(remarks.values()))


def _cuts(mark: CustomCallOp) -> bool:
    return mark.call_target_name.data == CHECKPOINTS


def _callers(module: ModuleOp) -> Mapping[str, list[CallOp]]:
    found = dict[str, list[CallOp]]()
    for op in every_operation(module):
        if isinstance(op, CallOp):
            found.setdefault(op.callee.string_value(), []).append(op)
    return found


def _take(mark: CustomCallOp, callers: Mapping[str, list[CallOp]]) -> Iterator[str]:
    value, target = mark.operands[0], mark.call_target_name.data
    made, reasons = list[SSAValue](), list[str]()
    _spread(value, callers, made, reasons)
    for one in made:
        assert isinstance(one.owner, Operation), "arguments are spread to what is passed for them"
        if target == NAME:
            add_names(one.owner, [name_in(mark)])
        else:
            say(one, StringAttr(POLICY_OF[target]))
    what = target.removeprefix(Names.PREFIX)
    yield from (f"'{what}' says nothing here: {reason}" for reason in reasons)
    if POLICY_OF.get(target) == Policy.OFFLOAD.value:
        yield NOT_MOVED


def _take_checkpoints(mark: CustomCallOp, callers: Mapping[str, list[CallOp]], cuts: list[str]) -> Iterator[str]:
    """Add the names of what cuts the step; those that are given as values get one here."""
    cuts.extend(name for name in name_in(mark).split(",") if name)
    for value in mark.operands[1:]:
        made, reasons = list[SSAValue](), list[str]()
        _spread(value, callers, made, reasons)
        name = f"checkpoint@{len(cuts)}"
        cuts.extend([name] if made else [])
        for one in made:
            assert isinstance(one.owner, Operation), "arguments are spread to what is passed for them"
            add_names(one.owner, [name])
        yield from (f"a checkpoint cuts nothing here: {reason}" for reason in reasons)


def _spread(value: SSAValue, callers: Mapping[str, list[CallOp]], made: list[SSAValue], reasons: list[str]) -> None:
    """The results of operations that are meant by a value, or why there is none."""
    if not isinstance(value, BlockArgument):
        if isinstance(value.owner, Operation) and is_mark(value.owner):
            _spread(value.owner.operands[0], callers, made, reasons)
        else:
            made.append(value)
        return
    function = value.block.parent_op()
    if not isinstance(function, FuncOp):
        reasons.append("the value is an argument of a region, which each of its runs gets anew")
        return
    calls = callers.get(function.sym_name.data, [])
    if not calls:
        reasons.append("the value is an argument of the step, which is there anyway")
    for call in calls:
        _spread(call.operands[value.index], callers, made, reasons)


def but_for_moves(remarks: Iterable[Remark], moved: bool) -> tuple[Remark, ...]:
    """Without what is said of values that are not moved, where they are."""
    return tuple(remark for remark in remarks if not moved or remark.reason != NOT_MOVED)


@dataclass(frozen=True)
class TakeMarksPass(ModulePass):
    """Turn marks that a framework writes as calls into attributes of what makes the value."""

    name = "recompute-take-marks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, take_marks(op).remarks)
