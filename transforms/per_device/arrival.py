"""Model when a cotangent arrives: the rest of the step runs between forward pass and gradient, and uses memory too.

    %y = …                                        the forward pass
    %left = left(%y)                              its end
    %c, %rest = arrived(%ct, %left)               %rest: residuals of the steps in between, dead at once
    %g = multiply %c, …                           the gradient reads %c in place of %ct

Without this the cotangents of a per-device step would be live from the start, and no other step would hold memory. The
operations are removed when the function is split.
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
from .pairs import DevicePair


@dataclass(frozen=True)
class Arrival:
    """`left` is the last operation of the forward pass, `arrived` the first one of the gradient."""

    left: UnrealizedConversionCastOp
    arrived: UnrealizedConversionCastOp


def arrive(cotangents: Sequence[SSAValue], needed: Sequence[SSAValue], held: int, before: Operation) -> Arrival:
    """Delay the cotangents of the gradient, whose first operation is `before`, until `needed` is defined, while `held`
    other bytes are live."""
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
    """Redirect uses of delayed cotangents to the cotangents and erase the operations."""
    arrived = arrival.arrived
    for operand, result in zip(arrived.inputs, arrived.outputs, strict=False):
        if any(result.uses):
            result.replace_all_uses_with(operand)
    for op in (arrived, arrival.left):
        op.detach()
        op.erase()


def come_late(pair: DevicePair) -> bool:
    """Whether a cotangent is not a constant."""
    block = pair.backward.parent
    assert block is not None, "the body stands in a block"
    constants = Order.of(block).constants
    return any(
        link is None and value not in constants for link, value in zip(pair.links, pair.backward.inputs, strict=True)
    )


def held_between(pair: DevicePair, pairs: Sequence[DevicePair]) -> int:
    """Bytes per device of the residuals of pairs that run between the two bodies of this pair."""
    block = pair.forward.parent
    assert block is not None, "the body stands in a block"
    position = {op: index for index, op in enumerate(block.ops)}
    inner = [
        other
        for other in pairs
        if other.forward.parent is block
        and position[pair.forward] < position[other.forward]
        and position[other.backward] < position[pair.backward]
    ]
    return sum(map(_residual_bytes, inner))


def _residual_bytes(pair: DevicePair) -> int:
    last = pair.forward.body.block.last_op
    assert last is not None, "a body ends"
    indices = {link.index for link in pair.links if link is not None and link.kind == "residual"}
    return sum(value_bytes(last.operands[index]) for index in indices)
