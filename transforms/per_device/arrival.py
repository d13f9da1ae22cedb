"""When a cotangent arrives: between the forward pass and the gradient the rest of the step runs, and holds memory too.

    %y = …                                        the forward pass
    %left = left(%y)                              its end
    %c, %rest = arrived(%ct, %left)               %rest: what the steps in between hand on, gone at once
    %g = multiply %c, …                           the gradient reads %c in place of %ct

Without this the function of a step per device would say that its cotangents are there from the start, and that nobody
else holds anything. It is taken out again when the function is split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr, TensorType, UnrealizedConversionCastOp, i8
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.order import Order
from ...analysis.step.storage import value_bytes
from ...dialects.recompute import Names
from .pairs import Pair


@dataclass(frozen=True)
class Arrival:
    """`left` is the last operation of the forward pass, `arrived` the first one of the gradient."""

    left: UnrealizedConversionCastOp
    arrived: UnrealizedConversionCastOp


def arrive(cotangents: Sequence[SSAValue], needed: Sequence[SSAValue], held: int, before: Operation) -> Arrival:
    """Have the gradient, of which `before` is the first operation, read the cotangents as they arrive: once `needed` is
    there, while `held` bytes are."""
    left = UnrealizedConversionCastOp(operands=[needed], result_types=[[TensorType(i8, [0])]])
    rest = [TensorType(i8, [held])] if held else []
    types = [*(value.type for value in cotangents), *rest]
    arrived = UnrealizedConversionCastOp(operands=[[*cotangents, *left.outputs]], result_types=[types])
    arrived.attributes[Names.PHASE] = StringAttr("gradient")
    for value, result in zip(cotangents, arrived.outputs, strict=False):
        result.name_hint = value.name_hint
        value.replace_uses_with_if(result, lambda use: use.operation is not arrived)
    Rewriter.insert_op([left, arrived], InsertPoint.before(before))
    return Arrival(left, arrived)


def take_out(arrival: Arrival) -> None:
    """Have who reads an arrived cotangent read the cotangent."""
    arrived = arrival.arrived
    for operand, result in zip(arrived.inputs, arrived.outputs, strict=False):
        if any(result.uses):
            result.replace_all_uses_with(operand)
    for op in (arrived, arrival.left):
        op.detach()
        op.erase()


def come_late(pair: Pair) -> bool:
    """Whether a cotangent is none that is known beforehand."""
    block = pair.backward.parent
    assert block is not None, "it stands in a block"
    constants = Order.of(block).constants
    return any(
        link is None and value not in constants for link, value in zip(pair.links, pair.backward.inputs, strict=True)
    )


def held_between(pair: Pair, pairs: Sequence[Pair]) -> int:
    """The bytes that the pairs hand on, on a device, which run between the two bodies of this one."""
    block = pair.forward.parent
    assert block is not None, "it stands in a block"
    position = {op: index for index, op in enumerate(block.ops)}
    inner = [
        one
        for one in pairs
        if one.forward.parent is block
        and position[pair.forward] < position[one.forward]
        and position[one.backward] < position[pair.backward]
    ]
    return sum(map(_handed_on, inner))


def _handed_on(pair: Pair) -> int:
    last = pair.forward.body.block.last_op
    assert last is not None, "a body ends"
    indices = {link.index for link in pair.links if link is not None and link.kind == "residual"}
    return sum(value_bytes(last.operands[index]) for index in indices)
