"""Steps inside of a block: the body of a loop, a branch, a body per device that holds a forward pass and its gradient.

    %r = stablehlo.while(...) do {              func.func @"main/0"(...) {
      forward; gradient                  ->       forward; gradient
      stablehlo.return %next, %sum                return %next, %sum
    }                                           }

Gradients that are accumulated over microbatches are such, and `value_and_grad` inside of a `shard_map`. For as long as
it is worked on such a block is a function of its own, so whatever works on steps works on it; a placeholder holds its
place. A block with several gradients, one behind the other, holds several steps:

    forward; gradient; forward; gradient    ->    forward; gradient; placeholder        func.func @"main+1"(...)

The second step of a GAN, of actor and critic, or of SAM is such: it begins with the first forward operation behind a
gradient.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from xdsl.dialects.builtin import FunctionType, ModuleOp, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...analysis.step.direction import Direction
from ...analysis.step.functions import functions_of
from ...analysis.step.order import Order, read_values
from ...analysis.step.phase_sources import PhaseSource, sources, stated_phase
from ...analysis.step.phases import step_starts
from ...dialects.stablehlo.control import OptimizationBarrierOp
from ...support.walk import every_operation
from ..per_device.outline import outline_device_steps
from ..per_device.split import split_device_steps


@dataclass(frozen=True)
class NestedStep:
    """Operations of a block that stand in a function. Its arguments stand for `first`, and then for the operands of
    `placeholder`, which makes meanwhile what the operations behind them read. `is_later`: a step that follows another
    one in its block."""

    function: FuncOp
    first: tuple[SSAValue, ...]
    placeholder: Operation
    is_later: bool = False


_SUFFIXES = re.compile(r"(?:/(?:devices)?\d+|\+\d+)+$")


def function_around(name: str) -> str:
    """The name of the function that holds a step: `main` for `main/0`, `main/devices0` and `main+1`."""
    return _SUFFIXES.sub("", name)


def outline_nested_steps(module: ModuleOp) -> Sequence[NestedStep]:
    """Make a function of every block inside of a function that is a step, the innermost first; and of every step behind
    the first one of a block, the last first."""
    nested = [
        _outlined_block(module, block, f"{function.sym_name.data}/{number}")
        for function in functions_of(module)
        for number, block in enumerate(_blocks_of_steps(function))
    ]
    for function in functions_of(module):
        if len(function.body.blocks) == 1:
            later = _later_steps(function.body.block)
            for number in reversed(range(len(later))):
                name = f"{function.sym_name.data}+{number + 1}"
                nested.append(replace(_outlined(module, later[number], name), is_later=True))
    return nested


def put_back(nested: Sequence[NestedStep], is_held_back: bool = False) -> None:
    """The operations of each function in the place of its placeholder. `is_held_back`: with a barrier in front of each
    later step, so that no executor begins its forward pass before the gradient of the step before is there."""
    for one in reversed(nested):
        inside, holder = one.function.body.block, one.placeholder.parent
        returned = inside.last_op
        assert returned is not None and holder is not None, "a function ends, and a placeholder stands in a block"
        for result, value in zip(one.placeholder.results, list(returned.operands), strict=True):
            result.replace_all_uses_with(value)
        inside.erase_op(returned)
        operations = list(inside.ops)
        _move(operations, holder, one.placeholder)
        for argument, value in zip(inside.args, (*one.first, *one.placeholder.operands), strict=True):
            argument.replace_all_uses_with(value)
        holder.erase_op(one.placeholder)
        one.function.detach()
        one.function.erase()
        if is_held_back and one.is_later:
            _hold_back(operations)


def _hold_back(operations: Sequence[Operation]) -> None:
    """Have the forward pass of a step read what it reads behind a barrier, which something passes too that comes from
    the gradient of the step before: what the forward pass reads of it, or else the last gradient that is made."""
    block = operations[0].parent
    assert block is not None, "a step stands in a block"
    order, asked = Order.of(block), sources()
    start = order.position[operations[0]]
    backward = [index for index in range(start) if _says(asked, order.operations[index], Direction.BACKWARD)]
    behind = {result for index in backward for result in order.operations[index].results}
    for op in order.operations[backward[0] if backward else start : start]:
        if not behind.isdisjoint(read_values(op)):
            behind.update(op.results)
    forward = [op for op in operations if _says(asked, op, Direction.FORWARD)]
    last = max((order.position[op] for op in forward), default=start)
    outside = dict.fromkeys(value for op in forward for value in order.reads[order.position[op]])
    read = [value for value in outside if order.definition(value) < start and value not in order.constants]
    waiting, late = ([value for value in read if (value in behind) is is_late] for is_late in (False, True))
    gates = [
        result
        for index in reversed(backward)
        for result in order.operations[index].results
        if any(order.position[reader] > last for reader in order.readers(result))
    ]
    gate = next(iter((*late, *gates)), None)
    if not waiting or gate is None:
        return
    barrier = OptimizationBarrierOp([*waiting, gate])
    barrier.location = operations[0].location
    block.insert_op_before(barrier, operations[0])
    inside = set(operations)
    for value, result in zip(barrier.operands, barrier.results, strict=True):
        result.name_hint = value.name_hint
        value.replace_uses_with_if(
            result,
            lambda use, value=value: (
                (owner := order.owner_here(use.operation)) is not None
                and (owner in inside if value is not gate or late else order.position[owner] > last)
            ),
        )


def _says(asked: Sequence[PhaseSource], op: Operation, direction: Direction) -> bool:
    return next((said for one in asked if (said := one.direction(op)) is not None), None) is direction


def _outlined_block(module: ModuleOp, block: Block, name: str) -> NestedStep:
    """All of a block but its terminator; the arguments of the block come first."""
    *operations, _ = block.ops
    return _outlined(module, operations, name, tuple(block.args))


def _outlined(
    module: ModuleOp, operations: Sequence[Operation], name: str, first: tuple[SSAValue, ...] = ()
) -> NestedStep:
    """`operations`: neighbours in a block. `first`: the first arguments of the function."""
    block, holder = operations[0].parent, operations[0].parent_op()
    assert block is not None and holder is not None, "a step stands in an operation"
    order, chosen = Order.of(block), set(operations)
    handed_on = [
        result
        for op in operations
        for result in op.results
        if any(order.owner_here(use.operation) not in chosen for use in result.uses)
    ]
    made = {result for op in operations for result in op.results}
    read = dict.fromkeys(value for op in operations for value in order.reads[order.position[op]])
    captured = [value for value in read if value not in made and value not in first]
    outside = (*first, *captured)
    inside = Block(arg_types=[value.type for value in outside])
    for argument, value in zip(inside.args, outside, strict=True):
        argument.name_hint = value.name_hint
    # The captured values stay alive as operands of the placeholder.
    placeholder = UnrealizedConversionCastOp(operands=[captured], result_types=[[value.type for value in handed_on]])
    block.insert_op_before(placeholder, operations[0])
    _move(operations, inside, None)
    for value, result in zip(handed_on, placeholder.results, strict=True):
        value.replace_uses_with_if(result, lambda use: inside.find_ancestor_op_in_block(use.operation) is None)
    inside.add_op(ReturnOp(*handed_on))
    for value, argument in zip(outside, inside.args, strict=True):
        value.replace_uses_with_if(argument, lambda use: inside.find_ancestor_op_in_block(use.operation) is not None)
    types = FunctionType.from_lists([value.type for value in outside], [value.type for value in handed_on])
    function = FuncOp(name, types, Region(inside))
    function.location = holder.location
    module.body.block.add_op(function)
    return NestedStep(function, first, placeholder)


def _move(operations: Sequence[Operation], block: Block, before: Operation | None) -> None:
    for op in operations:
        op.detach()
        if before is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, before)


@contextmanager
def nested_steps_apart(module: ModuleOp) -> Generator[None]:
    """Blocks that are steps, and pairs of bodies that are the two passes of one, are functions of the module
    meanwhile."""
    per_device = outline_device_steps(module)
    nested = outline_nested_steps(module)
    try:
        yield
    finally:
        put_back(nested)
        split_device_steps(per_device)


def _blocks_of_steps(function: FuncOp) -> Iterator[Block]:
    inside = [op for op in every_operation(function) if op.regions and op is not function]
    for op in reversed(inside):
        for region in op.regions:
            yield from (block for block in region.blocks if _is_step(block))


def _is_step(block: Block) -> bool:
    """Whether it holds operations of both directions, whoever says so."""
    asked, found = sources(), set[Direction]()
    for op in block.ops:
        found.update(said for source in asked if (said := source.direction(op)) is not None)
    return found >= {Direction.FORWARD, Direction.BACKWARD}


def _later_steps(block: Block) -> list[list[Operation]]:
    """The operations of each step of the block but for the first, which may hold what belongs to none."""
    order = Order.of(block)
    *operations, _ = order.operations
    if any(stated_phase(op) is not None for op in operations):
        return []  # They say themselves which operations are forward.
    constants, asked, direction = order.constants, sources(), dict[Operation, Direction]()
    for op in order.operations:
        is_constant = bool(op.results) and all(result in constants for result in op.results)
        said = None if is_constant else next((said for one in asked if (said := one.direction(op)) is not None), None)
        direction[op] = said or Direction.NONE
    starts = step_starts(order, direction)
    return [operations[start:end] for start, end in pairwise((*starts[1:], len(operations)))]
