"""Pair per-device bodies that are a forward pass and its gradient.

    %0:2 = sdy.manual_computation(%x) {…}           a result and a residual of the second body
    %1 = sdy.manual_computation(%ct, %0#1) {…}

JAX lowers the gradient of a `shard_map` to such bodies. They are a pair if the second is part of the gradient, on the
same devices, and reads results of the first with the same sharding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, OpResult

from ...analysis.step.direction import Direction
from ...analysis.step.phase_sources import sources
from ...dialects.computations import ManualComputationOp
from ...dialects.sdy import axes_of_mesh
from ...dialects.shardings import layout_of
from ...rules.kinds import is_constant
from ...support.walk import every_operation


@dataclass(frozen=True)
class OperandSource:
    """The source of an operand of the gradient: a result of the forward pass, or an operand of both."""

    kind: Literal["residual", "shared"]
    index: int


@dataclass(frozen=True)
class DevicePair:
    """`links`: the source of each operand of the gradient, or None if it is neither, as for a cotangent."""

    forward: ManualComputationOp
    backward: ManualComputationOp
    links: tuple[OperandSource | None, ...]
    mesh: str


def pairs_of(function: FuncOp) -> Iterator[DevicePair]:
    """Yield the pairs in the order of the gradients, the innermost blocks last; each body is in one pair at most."""
    blocks = list(function.body.blocks)
    for op in every_operation(function)[1:]:
        if not isinstance(op, ManualComputationOp):
            blocks.extend(block for region in op.regions for block in region.blocks)
    for block in blocks:
        yield from _pairs_in(block)


def _pairs_in(block: Block) -> Iterator[DevicePair]:
    """Choose the pairs of one block; candidates with the most links take precedence."""
    bodies = [op for op in block.ops if isinstance(op, ManualComputationOp)]
    candidates = [
        pair
        for index, backward in enumerate(bodies)
        if _is_gradient(backward)
        for forward in bodies[:index]
        if (pair := _pair(forward, backward)) is not None
    ]
    taken, chosen = set[ManualComputationOp](), dict[ManualComputationOp, DevicePair]()
    for pair in sorted(candidates, key=lambda pair: -sum(link is not None for link in pair.links)):
        if taken.isdisjoint((pair.forward, pair.backward)):
            taken.update((pair.forward, pair.backward))
            chosen[pair.backward] = pair
    yield from (chosen[op] for op in bodies if op in chosen)


def _is_gradient(op: ManualComputationOp) -> bool:
    """Whether all operations run backward. A body with both directions is a step of its own."""
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
    last = forward.body.block.last_op
    assert last is not None, "a body ends"
    if isinstance(value, OpResult) and value.op is forward:
        same = forward.out_shardings.data[value.index] == sharding and last.operands[value.index].type == part
        return OperandSource("residual", value.index) if same else None
    for number, (whole, argument) in enumerate(zip(forward.inputs, forward.body.block.args, strict=True)):
        if whole is value and forward.in_shardings.data[number] == sharding and argument.type == part:
            return OperandSource("shared", number)
    return None
