"""Forward pass and gradient per device, as one function for as long as it is worked on.

    %0:2 = sdy.manual_computation(%x) {                   func.func @"main/devices0"(%x, %ct) {
      forward; sdy.return %y, %r }                          forward
    %ct = …                                         ->      gradient
    %1 = sdy.manual_computation(%ct, %0#1) {                return %y, %dx
      gradient; sdy.return %dx }                          }

so whatever works on steps works on it. Around it two bodies stay that hold nothing: one hands on what others read of
the forward pass, the other reads the cotangents and what the forward pass reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, Use

from ...analysis.step.functions import functions_of
from ...dialects.computations import ManualComputationOp
from ...dialects.computations import ReturnOp as HandOnOp
from ...dialects.recompute import Names
from .arrival import Arrival, arrive, come_late, held_between
from .bodies import made_anew, move, replace_results
from .pairs import Pair, pairs_of
from .paths import continue_paths


@dataclass(frozen=True)
class DeviceStep:
    """`function`: the arguments of the forward pass, then those that the gradient alone has; what others read of the
    forward pass, then what the gradient returns. `forward`, `backward`: what stays around it. `stated`: operations that
    are said to be of the gradient meanwhile. `arrival`: where its cotangents come in, unless all are known before."""

    function: FuncOp
    forward: ManualComputationOp
    backward: ManualComputationOp
    mesh: str
    stated: tuple[Operation, ...]
    arrival: Arrival | None


def outline_device_steps(module: ModuleOp) -> Sequence[DeviceStep]:
    """Make a function of every such pair."""
    steps = list[DeviceStep]()
    for function in functions_of(module):
        pairs = list(pairs_of(function))
        held = [held_between(pair, pairs) for pair in pairs]
        for number, (pair, between) in enumerate(zip(pairs, held, strict=True)):
            steps.append(_outlined(module, pair, f"{function.sym_name.data}/devices{number}", between))
    return steps


def _outlined(module: ModuleOp, pair: Pair, name: str, held: int) -> DeviceStep:
    forward, backward, last = pair.forward, pair.backward, pair.backward.body.block.last_op
    assert last is not None, "a body ends"
    kept = [result.index for result in forward.results if any(_is_read_elsewhere(use, pair) for use in result.uses)]
    alone = [index for index, link in enumerate(pair.links) if link is None]
    is_late = come_late(pair)
    inside, handed_on, gradient = _joined(pair, alone)
    stated, arrival = _stated(gradient), None
    if is_late and gradient:
        arrival = arrive(inside.args[len(forward.inputs) :], [handed_on[index] for index in kept], held, gradient[0])
    results = [*(handed_on[index] for index in kept), *last.operands]
    inside.add_op(ReturnOp(*results))
    types = FunctionType.from_lists(inside.arg_types, [value.type for value in results])
    function = FuncOp(name, types, Region(inside))
    function.location = forward.location
    module.body.block.add_op(function)
    own, taken = list(zip(forward.inputs, forward.in_shardings.data, strict=True)), len(forward.inputs)
    one = _emptied(forward, own, inside.arg_types[:taken], kept, handed_on)
    cotangents = [(backward.inputs[index], backward.in_shardings.data[index]) for index in alone]
    parts = [*inside.arg_types[taken:], *inside.arg_types[:taken]]
    other = _emptied(backward, [*cotangents, *own], parts, range(len(backward.results)), last.operands)
    for op in (backward, forward):
        op.detach()
        op.erase()
    return DeviceStep(function, one, other, pair.mesh, stated, arrival)


def _is_read_elsewhere(use: Use, pair: Pair) -> bool:
    return use.operation is not pair.backward or pair.links[use.index] is None


def _joined(pair: Pair, alone: Sequence[int]) -> tuple[Block, Sequence[SSAValue], Sequence[Operation]]:
    """Both bodies as one block without its end; what the forward pass hands on, and the operations of the gradient.

    `alone`: what the gradient reads that is no part of the forward pass.
    """
    one, other = pair.forward.body.block, pair.backward.body.block
    outer = [*one.args, *(other.args[index] for index in alone)]
    inside = Block(arg_types=[argument.type for argument in outer])
    own, behind = inside.args[: len(one.args)], dict(zip(alone, inside.args[len(one.args) :], strict=True))
    for argument, value in zip(outer, inside.args, strict=True):
        value.name_hint = argument.name_hint
    for argument, value in zip(one.args, own, strict=True):
        argument.replace_all_uses_with(value)
    continue_paths(pair.forward, one.ops)
    continue_paths(pair.backward, other.ops)
    last = one.last_op
    assert last is not None, "a body ends"
    for index, (argument, link) in enumerate(zip(other.args, pair.links, strict=True)):
        if link is None:
            argument.replace_all_uses_with(behind[index])
        else:
            argument.replace_all_uses_with(last.operands[link.index] if link.kind == "residual" else own[link.index])
    move([op for op in one.ops if op is not last], inside)
    gradient = [op for op in other.ops if op is not other.last_op]
    move(gradient, inside)
    return inside, tuple(last.operands), gradient


def _stated(gradient: Sequence[Operation]) -> tuple[Operation, ...]:
    """Those that it had to be written on that they are of the gradient."""
    silent = tuple(op for op in gradient if Names.PHASE not in op.attributes)
    for op in silent:
        op.attributes[Names.PHASE] = StringAttr("gradient")
    return silent


def _emptied(
    op: ManualComputationOp,
    operands: Sequence[tuple[SSAValue, str]],
    parts: Sequence[Attribute],
    kept: Sequence[int],
    handed_on: Sequence[SSAValue],
) -> ManualComputationOp:
    """A body with nothing inside in the place of this one, with these results of it."""
    block = Block(arg_types=parts)
    made = UnrealizedConversionCastOp(
        operands=[list(block.args)], result_types=[[handed_on[index].type for index in kept]]
    )
    block.add_ops([made, HandOnOp.create(operands=made.results)])
    results = [(op.results[index].type, op.out_shardings.data[index]) for index in kept]
    emptied = made_anew(op, operands, results, block)
    replace_results(op, kept, emptied)
    return emptied
