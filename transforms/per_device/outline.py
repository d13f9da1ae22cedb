"""Outline per-device steps: join the forward pass and the gradient of a `shard_map` in one function.

    %0:2 = sdy.manual_computation(%x) {                   func.func @"main/devices0"(%x, %ct) {
      forward; sdy.return %y, %r }                          forward
    %ct = …                                         ->      gradient
    %1 = sdy.manual_computation(%ct, %0#1) {                return %y, %dx
      gradient; sdy.return %dx }                          }

Every pass over steps then applies to the function. Two empty bodies replace the original bodies. The first one returns
the forward results that the rest of the step uses. The second one reads the cotangents and the operands of the forward
pass.

The location paths inside a `shard_map` do not include the path around it, so they are completed:

    "layer0/sin"  in  "jit(loss)/jvp()/shard_map"      is      "jit(loss)/jvp()/layer0/sin"
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import FunctionType, LocationAttr, ModuleOp, NameLoc, StringAttr, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, Use
from xdsl.rewriter import Rewriter

from ...analysis.step.jax_paths import path_of, split_path
from ...analysis.step.order import functions_of
from ...dialects.names import Names
from ...dialects.sdy.computations import ManualComputationOp, ShardyReturnOp
from ...dialects.sdy.shardings import ShardingPerValueAttr
from ...support.operations import block_of, every_operation, terminator_of
from ...support.phase import Phase
from .device_pairs import (
    CotangentDelay,
    DevicePair,
    has_cotangents,
    insert_cotangent_delay,
    pairs_of,
    residual_bytes_between,
)


def complete_paths(around: Operation, inside: Iterable[Operation]) -> None:
    """Prepend the path of an operation to the location paths of the operations in it, at every depth."""
    prefix = split_path(path_of(around.location))[:-1]
    if not prefix:
        return
    for op in inside:
        for inner in every_operation(op):
            inner.location = _complete_location(inner.location, "/".join(prefix), prefix[0])


def _complete_location(location: LocationAttr, prefix: str, start: str) -> LocationAttr:
    kinds = list[StringAttr]()
    inner = cast(Attribute, location)
    while isinstance(inner, NameLoc) and inner.desc.data.endswith(":"):
        kinds.append(inner.desc)
        inner = inner.location
    if not isinstance(inner, NameLoc) or not (name := inner.desc.data) or name == start or name.startswith(f"{start}/"):
        return location
    continued = NameLoc(StringAttr(f"{prefix}/{name}"), inner.location)
    for kind in reversed(kinds):
        continued = NameLoc(kind, continued)
    return continued


def is_stand_in(op: Operation) -> bool:
    """Return whether the operation is a placeholder for outlined operations. Reports skip placeholders."""
    if isinstance(op, ManualComputationOp):
        return isinstance(op.body.block.first_op, UnrealizedConversionCastOp)
    return isinstance(op, UnrealizedConversionCastOp)


def rebuild(
    op: ManualComputationOp,
    operands: Sequence[tuple[SSAValue, str]],
    results: Sequence[tuple[Attribute, str]],
    block: Block,
) -> ManualComputationOp:
    """Insert a new per-device body before `op`, with the same devices and attributes.

    Args:
        op: The body to replace.
        operands: The operands with their shardings.
        results: The result types with their shardings.
        block: The block of the new body.
    """
    rebuilt = ManualComputationOp.create(
        operands=[value for value, _ in operands],
        result_types=[type_ for type_, _ in results],
        properties={
            "in_shardings": ShardingPerValueAttr(tuple(sharding for _, sharding in operands)),
            "out_shardings": ShardingPerValueAttr(tuple(sharding for _, sharding in results)),
            "manual_axes": op.manual_axes,
        },
        attributes=dict(op.attributes),
        regions=[Region(block)],
    )
    rebuilt.location = op.location
    parent = block_of(op)
    parent.insert_op_before(rebuilt, op)
    return rebuilt


def replace_results(op: ManualComputationOp, indices: Sequence[int], rebuilt: ManualComputationOp) -> None:
    """Redirect uses of the results of `op` with these indices to the first results of `rebuilt`."""
    for index, new in zip(indices, rebuilt.results, strict=False):
        new.name_hint = op.results[index].name_hint
        op.results[index].replace_all_uses_with(new)


def move(operations: Sequence[Operation], into: Block) -> None:
    """Move operations to the end of another block."""
    for op in operations:
        op.detach()
        into.add_op(op)


@dataclass(frozen=True, kw_only=True)
class DeviceStep:
    """A per-device step that is outlined as a function.

    Attributes:
        function: The function. Its arguments are the arguments of the forward pass, then the arguments that only the
            gradient reads. Its results are the forward results that other operations use, then the results of the
            gradient.
        forward, backward: The empty bodies that replace the step in its original function.
        mesh: The mesh of devices.
        parent: The name of the function from which the bodies are outlined.
        newly_marked: The operations that are temporarily marked as gradient.
        delay: The placeholders that delay the cotangents; None if all cotangents are constants.
    """

    function: FuncOp
    forward: ManualComputationOp
    backward: ManualComputationOp
    mesh: str
    newly_marked: tuple[Operation, ...]
    delay: CotangentDelay | None
    parent: str


def outline_device_steps(module: ModuleOp) -> Sequence[DeviceStep]:
    """Outline every pair of per-device bodies of the module."""
    steps = list[DeviceStep]()
    for function in functions_of(module):
        pairs = list(pairs_of(function))
        held = [residual_bytes_between(pair, pairs) for pair in pairs]
        for number, (pair, between) in enumerate(zip(pairs, held, strict=True)):
            steps.append(_outline(module, pair, function.sym_name.data, number, between))
    return steps


def _outline(module: ModuleOp, pair: DevicePair, parent: str, number: int, held: int) -> DeviceStep:
    """Outline a pair.

    Args:
        module: The module. The function is added to it.
        pair: The pair.
        parent, number: The name of the function that contains the pair, and the index of the pair in it.
        held: The bytes of other values that are live when the gradient begins.
    """
    indices = [
        result.index for result in pair.forward.results if any(_is_read_elsewhere(use, pair) for use in result.uses)
    ]
    unlinked = [index for index, link in enumerate(pair.links) if link is None]
    is_late = has_cotangents(pair)
    joined = _join(pair, unlinked)
    newly_marked, delay = _mark_as_gradient(joined.gradient), None
    if is_late and joined.gradient:
        needed = [joined.forward_results[index] for index in indices]
        delay = insert_cotangent_delay(joined.cotangents, needed, held, joined.gradient[0])
    # The gradient may return a cotangent. By now, this is a delayed value.
    returned = terminator_of(pair.backward.body.block).operands
    values = [*(joined.forward_results[index] for index in indices), *returned]
    joined.block.add_op(ReturnOp(*values))
    types = FunctionType.from_lists(joined.block.arg_types, [value.type for value in values])
    function = FuncOp(f"{parent}/devices{number}", types, Region(joined.block))
    function.location = pair.forward.location
    module.body.block.add_op(function)
    forward, backward = _empty_bodies(pair, joined, indices, unlinked)
    for op in (pair.backward, pair.forward):
        Rewriter.erase_op(op)
    return DeviceStep(
        function=function,
        forward=forward,
        backward=backward,
        mesh=pair.mesh,
        newly_marked=newly_marked,
        delay=delay,
        parent=parent,
    )


def _empty_bodies(
    pair: DevicePair, joined: _JoinedBodies, indices: Sequence[int], unlinked: Sequence[int]
) -> tuple[ManualComputationOp, ManualComputationOp]:
    """Replace both bodies of a pair with empty ones.

    Args:
        pair, joined: The pair, and its bodies as one block.
        indices: The indices of the forward results that other operations read.
        unlinked: The indices of the gradient's operands that are not values of the forward pass.
    """
    own = list(zip(pair.forward.inputs, pair.forward.in_shardings.data, strict=True))
    own_types, cotangent_types = ([value.type for value in values] for values in (joined.own, joined.cotangents))
    forward = _replace_by_empty(pair.forward, own, own_types, indices, joined.forward_results)
    cotangents = [(pair.backward.inputs[index], pair.backward.in_shardings.data[index]) for index in unlinked]
    returned = terminator_of(pair.backward.body.block).operands
    every_result = range(len(pair.backward.results))
    backward = _replace_by_empty(
        pair.backward, [*cotangents, *own], [*cotangent_types, *own_types], every_result, returned
    )
    return forward, backward


def _is_read_elsewhere(use: Use, pair: DevicePair) -> bool:
    return use.operation is not pair.backward or pair.links[use.index] is None


@dataclass(frozen=True)
class _JoinedBodies:
    """The bodies of a pair in one block without a terminator.

    Attributes:
        block: The block.
        own, cotangents: Its arguments for the forward pass, and its arguments for the gradient only.
        forward_results: The results of the forward pass.
        gradient: The gradient operations.
    """

    block: Block
    own: Sequence[SSAValue]
    cotangents: Sequence[SSAValue]
    forward_results: Sequence[SSAValue]
    gradient: Sequence[Operation]


def _join(pair: DevicePair, unlinked: Sequence[int]) -> _JoinedBodies:
    """Join both bodies. `unlinked`: the indices of the gradient's operands that are not values of the forward pass."""
    forward_block, backward_block = pair.forward.body.block, pair.backward.body.block
    arguments = [*forward_block.args, *(backward_block.args[index] for index in unlinked)]
    block = Block(arg_types=[argument.type for argument in arguments])
    for argument, value in zip(arguments, block.args, strict=True):
        value.name_hint = argument.name_hint
    own, cotangents = block.args[: len(forward_block.args)], block.args[len(forward_block.args) :]
    for argument, value in zip(forward_block.args, own, strict=True):
        argument.replace_all_uses_with(value)
    complete_paths(pair.forward, forward_block.ops)
    complete_paths(pair.backward, backward_block.ops)
    last = terminator_of(forward_block)
    cotangent_of = dict(zip(unlinked, cotangents, strict=True))
    for index, (argument, link) in enumerate(zip(backward_block.args, pair.links, strict=True)):
        if link is None:
            argument.replace_all_uses_with(cotangent_of[index])
        else:
            argument.replace_all_uses_with(last.operands[link.index] if link.kind == "residual" else own[link.index])
    move([op for op in forward_block.ops if op is not last], block)
    *gradient, _ = backward_block.ops
    move(gradient, block)
    return _JoinedBodies(block, own, cotangents, tuple(last.operands), gradient)


def _mark_as_gradient(gradient: Sequence[Operation]) -> tuple[Operation, ...]:
    """Mark the operations without a phase as gradient operations. Return these operations."""
    unmarked = tuple(op for op in gradient if Names.PHASE not in op.attributes)
    for op in unmarked:
        op.attributes[Names.PHASE] = StringAttr(Phase.GRADIENT.value)
    return unmarked


def _replace_by_empty(
    op: ManualComputationOp,
    operands: Sequence[tuple[SSAValue, str]],
    parts: Sequence[Attribute],
    indices: Sequence[int],
    values: Sequence[SSAValue],
) -> ManualComputationOp:
    """Replace the body with an empty one that returns only the results at the indices in `indices`.

    Args:
        op: The body.
        operands: The operands of the new body, with their shardings.
        parts: The types of these operands on one device.
        indices: The indices of the results to return.
        values: The values on one device that the original body returns.
    """
    block = Block(arg_types=parts)
    cast = UnrealizedConversionCastOp(
        operands=[list(block.args)], result_types=[[values[index].type for index in indices]]
    )
    block.add_ops([cast, ShardyReturnOp.create(operands=cast.results)])
    results = [(op.results[index].type, op.out_shardings.data[index]) for index in indices]
    emptied = rebuild(op, operands, results, block)
    replace_results(op, indices, emptied)
    return emptied
