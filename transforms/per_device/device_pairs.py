"""Find the pairs of per-device bodies that consist of a forward pass and its gradient.

    %0:2 = sdy.manual_computation(%x) {…}           a result and a residual of the second body
    %1 = sdy.manual_computation(%ct, %0#1) {…}

JAX lowers the gradient of a `shard_map` to such bodies. Two bodies are a pair if the second belongs to the gradient,
runs on the same devices, and reads results of the first with the same sharding.

When a pair is joined, two placeholder operations represent the part of the step that runs between the two bodies and
also uses memory:

    %y = …                                        the forward pass
    %end = forward_end(%y)
    %c, %rest = gradient_start(%ct, %end)         %rest: residuals of the steps in between, dead at once
    %g = multiply %c, …                           the gradient reads %c instead of %ct

Without the placeholders, the cotangents of a per-device step would be live from the start, and the memory of other
steps would not be counted. The placeholders are removed when the function is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import StringAttr, TensorType, UnrealizedConversionCastOp, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.direction import Direction
from ...analysis.step.order import Order
from ...analysis.step.phase_sources import sources
from ...analysis.step.views import value_bytes
from ...dialects.names import Names
from ...dialects.sdy.computations import ManualComputationOp
from ...dialects.sdy.sharding_ops import axes_of_mesh
from ...dialects.sdy.shardings import layout_of
from ...rules.effects import is_constant
from ...support.operations import block_of, every_operation, operations_in, terminator_of
from ...support.phase import Phase


@dataclass(frozen=True)
class OperandSource:
    """The source of an operand of the gradient: a result of the forward pass (`residual`), or an operand of both bodies
    (`shared`).

    `index`: the index of this result, or of this operand of the forward pass.
    """

    kind: Literal["residual", "shared"]
    index: int


@dataclass(frozen=True)
class DevicePair:
    """A pair of per-device bodies: a forward pass and its gradient.

    Attributes:
        forward, backward: The bodies.
        links: The source of each operand of the gradient; None for an operand without a source, such as a cotangent.
        mesh: The mesh of devices.
    """

    forward: ManualComputationOp
    backward: ManualComputationOp
    links: tuple[OperandSource | None, ...]
    mesh: str


def pairs_of(function: FuncOp) -> Iterator[DevicePair]:
    """Yield the pairs of a function in the order of their gradients. Pairs in inner blocks come last.

    A body is in at most one pair.
    """
    blocks = list(function.body.blocks)
    for op in every_operation(function)[1:]:
        if not isinstance(op, ManualComputationOp):
            blocks.extend(block for region in op.regions for block in region.blocks)
    for block in blocks:
        yield from _pairs_in(block)


def _pairs_in(block: Block) -> Iterator[DevicePair]:
    """Yield the pairs of one block. If candidates share a body, the candidate with the most linked operands is
    taken."""
    bodies = [op for op in operations_in(block) if type(op) is ManualComputationOp]
    candidates = [
        pair
        for index, backward in enumerate(bodies)
        if _is_gradient(backward)
        for forward in bodies[:index]
        if (pair := _pair(forward, backward)) is not None
    ]
    paired_operations = set[ManualComputationOp]()
    chosen = dict[ManualComputationOp, DevicePair]()
    for pair in sorted(candidates, key=lambda pair: -sum(link is not None for link in pair.links)):
        if paired_operations.isdisjoint((pair.forward, pair.backward)):
            paired_operations.update((pair.forward, pair.backward))
            chosen[pair.backward] = pair
    yield from (chosen[op] for op in bodies if op in chosen)


def _is_gradient(op: ManualComputationOp) -> bool:
    """Return whether a body contains backward operations, but no forward operations. A body with operations of both
    directions is a complete step."""
    return _directions(op) == {Direction.BACKWARD}


def _directions(op: ManualComputationOp) -> set[Direction]:
    phase_sources = sources()
    directions = (
        source.direction(inner) for inner in every_operation(op) if not is_constant(inner) for source in phase_sources
    )
    return {direction for direction in directions if direction not in (None, Direction.NONE)}


def _pair(forward: ManualComputationOp, backward: ManualComputationOp) -> DevicePair | None:
    if forward.manual_axes != backward.manual_axes or Direction.BACKWARD in _directions(forward):
        return None
    layouts = [
        layout_of(sharding)
        for op in (forward, backward)
        for sharding in (*op.in_shardings.data, *op.out_shardings.data)
    ]
    meshes = {None if layout is None else layout.mesh for layout in layouts}
    mesh = next(iter(meshes)) if len(meshes) == 1 else None
    links = tuple(_link(forward, backward, index) for index in range(len(backward.inputs)))
    if mesh is None or not set(forward.manual_axes.data) <= axes_of_mesh(forward, mesh).keys():
        return None
    if not any(link is not None and link.kind == "residual" for link in links):
        return None
    return DevicePair(forward, backward, links, mesh)


def _link(forward: ManualComputationOp, backward: ManualComputationOp, index: int) -> OperandSource | None:
    value, sharding = backward.inputs[index], backward.in_shardings.data[index]
    part = backward.body.block.args[index].type
    last = terminator_of(forward.body.block)
    if isinstance(value, OpResult) and value.op is forward:
        same = forward.out_shardings.data[value.index] == sharding and last.operands[value.index].type == part
        return OperandSource("residual", value.index) if same else None
    for number, (whole, argument) in enumerate(zip(forward.inputs, forward.body.block.args, strict=True)):
        if whole is value and forward.in_shardings.data[number] == sharding and argument.type == part:
            return OperandSource("shared", number)
    return None


@dataclass(frozen=True)
class CotangentDelay:
    """The placeholders that delay the cotangents of a pair.

    Attributes:
        forward_end: The placeholder at the end of the forward pass.
        gradient_start: The placeholder at the start of the gradient.
    """

    forward_end: UnrealizedConversionCastOp
    gradient_start: UnrealizedConversionCastOp


def insert_cotangent_delay(
    cotangents: Sequence[SSAValue], needed: Sequence[SSAValue], held: int, before: Operation
) -> CotangentDelay:
    """Insert placeholders that delay the cotangents of the gradient.

    Args:
        cotangents: The cotangents.
        needed: The results of the forward pass. They must be defined before the cotangents.
        held: The bytes of other values that are live when the gradient begins.
        before: The first operation of the gradient.
    """
    forward_end = UnrealizedConversionCastOp(operands=[needed], result_types=[[TensorType(i8, [0])]])
    held_types = [TensorType(i8, [held])] if held else []
    types = [*(value.type for value in cotangents), *held_types]
    gradient_start = UnrealizedConversionCastOp(operands=[[*cotangents, *forward_end.outputs]], result_types=[types])
    gradient_start.attributes[Names.PHASE] = StringAttr(Phase.GRADIENT.value)
    for value, result in zip(cotangents, gradient_start.outputs, strict=False):
        result.name_hint = value.name_hint
        value.replace_uses_with_if(result, lambda use: use.operation is not gradient_start)
    Rewriter.insert_op([forward_end, gradient_start], InsertPoint.before(before))
    return CotangentDelay(forward_end, gradient_start)


def remove_cotangent_delay(delay: CotangentDelay) -> None:
    """Remove the placeholders, so that the gradient reads the cotangents themselves."""
    gradient_start = delay.gradient_start
    for operand, result in zip(gradient_start.inputs, gradient_start.outputs, strict=False):
        if any(result.uses):
            result.replace_all_uses_with(operand)
    for op in (gradient_start, delay.forward_end):
        Rewriter.erase_op(op)


def has_cotangents(pair: DevicePair) -> bool:
    """Return whether a cotangent of the pair is not a constant, and therefore exists only after the forward pass."""
    block = block_of(pair.backward)
    constants = Order.of(block).constants
    return any(
        link is None and value not in constants for link, value in zip(pair.links, pair.backward.inputs, strict=True)
    )


def residual_bytes_between(pair: DevicePair, pairs: Sequence[DevicePair]) -> int:
    """Return the residual bytes per device of the pairs that run between the two bodies of this pair."""
    block = block_of(pair.forward)
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
    last = terminator_of(pair.forward.body.block)
    indices = {link.index for link in pair.links if link is not None and link.kind == "residual"}
    return sum(value_bytes(last.operands[index]) for index in indices)
