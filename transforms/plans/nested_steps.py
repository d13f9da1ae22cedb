"""Steps inside of a block: the body of a loop, a branch, a body per device that holds a forward pass and its gradient.

    %r = stablehlo.while(...) do {              func.func @"main/0"(...) {
      forward; gradient                  ->       forward; gradient
      stablehlo.return %next, %sum                return %next, %sum
    }                                           }

Gradients that are accumulated over microbatches are such, and `value_and_grad` inside of a `shard_map`. For as long as
it is worked on such a block is a function of its own, so whatever works on steps works on it; a copy holds its place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, ModuleOp, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...analysis.step.direction import Direction
from ...analysis.step.functions import functions_of
from ...analysis.step.order import Order
from ...analysis.step.phase_sources import sources
from ...dialects.every import every_operation
from ..per_device.outline import outline_device_steps
from ..per_device.split import split_device_steps


@dataclass(frozen=True)
class NestedStep:
    """A block whose operations stand in a function. `outside`: what the function's arguments stand for, those of the
    block first; `placeholder` makes what the block hands on meanwhile."""

    function: FuncOp
    block: Block
    outside: tuple[SSAValue, ...]
    placeholder: Operation


def outline_nested_steps(module: ModuleOp) -> Sequence[NestedStep]:
    """Make a function of every block inside of a function that is a step, the innermost first."""
    return [
        _outlined(module, block, f"{function.sym_name.data}/{number}")
        for function in functions_of(module)
        for number, block in enumerate(_blocks_of_steps(function))
    ]


def put_back(nested: Sequence[NestedStep]) -> None:
    """The operations of each function in the place of what holds it."""
    for one in reversed(nested):
        inside, terminator = one.function.body.block, one.block.last_op
        returned = inside.last_op
        assert terminator is not None and returned is not None, "both blocks have a terminator"
        terminator.operands = list(returned.operands)
        inside.erase_op(returned)
        one.block.erase_op(one.placeholder)
        _move(list(inside.ops), one.block, terminator)
        for argument, value in zip(inside.args, one.outside, strict=True):
            argument.replace_all_uses_with(value)
        one.function.detach()
        one.function.erase()


def _outlined(module: ModuleOp, block: Block, name: str) -> NestedStep:
    holder, terminator = block.parent_op(), block.last_op
    assert holder is not None and terminator is not None, "the block of a step stands in an operation, and ends"
    captured = _captured(block)
    outside = (*block.args, *captured)
    inside = Block(arg_types=[value.type for value in outside])
    for argument, value in zip(inside.args, outside, strict=True):
        argument.name_hint = value.name_hint
    handed_on = list(terminator.operands)
    # It reads what the block does, which nobody else may read.
    placeholder = UnrealizedConversionCastOp(operands=[captured], result_types=[[value.type for value in handed_on]])
    block.insert_op_before(placeholder, terminator)
    terminator.operands = placeholder.results
    _move([op for op in block.ops if op not in (placeholder, terminator)], inside, None)
    inside.add_op(ReturnOp(*handed_on))
    for value, argument in zip(outside, inside.args, strict=True):
        value.replace_uses_with_if(argument, lambda use: inside.find_ancestor_op_in_block(use.operation) is not None)
    types = FunctionType.from_lists([value.type for value in outside], [value.type for value in handed_on])
    function = FuncOp(name, types, Region(inside))
    function.location = holder.location
    module.body.block.add_op(function)
    return NestedStep(function, block, outside, placeholder)


def _move(operations: Sequence[Operation], block: Block, before: Operation | None) -> None:
    for op in operations:
        op.detach()
        if before is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, before)


def _captured(block: Block) -> list[SSAValue]:
    """What the operations read from around the block, each value once."""
    order = Order.of(block)
    read = dict.fromkeys(value for values in order.reads for value in values)
    own = set(block.args)
    return [value for value in read if order.definition(value) < 0 and value not in own]


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
