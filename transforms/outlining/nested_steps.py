"""Outline nested steps: loop bodies, branches and per-device bodies with a forward pass and its gradient.

    %r = stablehlo.while(...) do {              func.func @"main/0"(...) {
      forward; gradient                  ->       forward; gradient
      stablehlo.return %next, %sum                return %next, %sum
    }                                           }

Examples are gradients accumulated over microbatches, and `value_and_grad` inside a `shard_map`. While passes run, such
a block is a separate function, so that every pass over steps applies to it. A placeholder takes its original place. A
block with several gradients in sequence contains several steps:

    forward; gradient; forward; gradient    ->    forward; gradient; placeholder        func.func @"main+1"(...)

Examples are the second step of a GAN, of an actor-critic method, or of SAM. A later step begins with the first forward
operation after a gradient.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from xdsl.dialects.builtin import FunctionType, ModuleOp, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...analysis.explain.executed_flops import runs_of
from ...analysis.step.direction import Direction
from ...analysis.step.order import Order, functions_of, read_values
from ...analysis.step.phase_sources import PhaseSource, sources, stated_phase
from ...analysis.step.phases import step_starts
from ...dialects.stablehlo.control import OptimizationBarrierOp
from ...support.operations import block_of, every_operation, operations_in, terminator_of
from ..per_device.split import device_steps_outlined


@dataclass(frozen=True)
class NestedStep:
    """A step that is outlined as a function.

    Attributes:
        function: The function. Its arguments are `first`, then the operands of `placeholder`.
        first: The arguments of the block, if the step is a whole block.
        placeholder: The operation whose results replace the results of the outlined operations.
        parent: The name of the function from which the step is outlined.
        is_later: Whether the step follows another step in its block.
        runs: The number of times that the step runs in one run of `parent`: the product of the trip counts of the
            enclosing loops.
    """

    function: FuncOp
    first: tuple[SSAValue, ...]
    placeholder: Operation
    parent: str
    is_later: bool = False
    runs: int = 1


def outline_nested_steps(module: ModuleOp) -> Sequence[NestedStep]:
    """Outline every nested block that is a step, inner blocks first. Then outline the later steps of each function,
    the last step first."""
    nested = [
        _outline_block(module, block, function.sym_name.data, number)
        for function in functions_of(module)
        for number, block in enumerate(_blocks_of_steps(function))
    ]
    for function in functions_of(module):
        if len(function.body.blocks) == 1:
            later = _later_steps(function.body.block)
            for number in reversed(range(len(later))):
                parent = function.sym_name.data
                step = _outline(module, later[number], parent, f"{parent}+{number + 1}")
                nested.append(replace(step, is_later=True))
    return nested


def put_back(nested: Sequence[NestedStep], delays_later_steps: bool = False) -> None:
    """Inline each function at its placeholder.

    `delays_later_steps`: whether to insert a barrier before each later step, so that no executor begins its forward
    pass before the gradient of the previous step is complete.
    """
    for step in reversed(nested):
        inside = step.function.body.block
        enclosing_block = block_of(step.placeholder)
        returned = terminator_of(inside)
        for result, value in zip(step.placeholder.results, list(returned.operands), strict=True):
            result.replace_all_uses_with(value)
        inside.erase_op(returned)
        operations = operations_in(inside)
        _move(operations, enclosing_block, step.placeholder)
        for argument, value in zip(inside.args, (*step.first, *step.placeholder.operands), strict=True):
            argument.replace_all_uses_with(value)
        enclosing_block.erase_op(step.placeholder)
        Rewriter.erase_op(step.function)
        if delays_later_steps and step.is_later:
            _insert_barrier(operations)


def _insert_barrier(operations: Sequence[Operation]) -> None:
    """Insert a barrier to delay the values that a later step's forward pass reads.

    The gate is a value of the previous step's gradient: one that the forward pass of the later step reads, or otherwise
    the last value of the gradient.

    `operations`: the operations of the later step.
    """
    block, phase_sources = block_of(operations[0]), sources()
    order = Order.of(block)
    start = order.position[operations[0]]
    forward = [op for op in operations if _has_direction(phase_sources, op, Direction.FORWARD)]
    backward = [op for op in order.operations[:start] if _has_direction(phase_sources, op, Direction.BACKWARD)]
    dependents = _gradient_dependents(order, backward, start)
    outside = dict.fromkeys(value for op in forward for value in order.reads[order.position[op]])
    read = [value for value in outside if order.definition(value) < start and value not in order.constants]
    waiting, late = ([value for value in read if (value in dependents) is is_late] for is_late in (False, True))
    end = max((order.position[op] for op in forward), default=start)
    gate = late[0] if late else _last_result_read_after(order, backward, end)
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
                and (owner in inside if value is not gate or late else order.position[owner] > end)
            ),
        )


def _gradient_dependents(order: Order, backward: Sequence[Operation], start: int) -> set[SSAValue]:
    """Return the values before position `start` that are computed by backward operations or depend on such values."""
    dependents = set[SSAValue](result for op in backward for result in op.results)
    for op in order.operations[order.position[backward[0]] if backward else start : start]:
        if not dependents.isdisjoint(read_values(op)):
            dependents.update(op.results)
    return dependents


def _last_result_read_after(order: Order, backward: Sequence[Operation], end: int) -> SSAValue | None:
    """Return the last backward result that is read after position `end`; None if there is none."""
    results = (result for op in reversed(backward) for result in op.results)
    return next((value for value in results if any(order.position[op] > end for op in order.readers(value))), None)


def _has_direction(phase_sources: Sequence[PhaseSource], op: Operation, direction: Direction) -> bool:
    return _direction(phase_sources, op) is direction


def _direction(phase_sources: Sequence[PhaseSource], op: Operation) -> Direction | None:
    """Return the direction of an operation, forward or backward, from the first source that knows it; None if it is
    unknown."""
    return next((stated for source in phase_sources if (stated := source.direction(op)) is not None), None)


def _outline_block(module: ModuleOp, block: Block, parent: str, number: int) -> NestedStep:
    """Outline a block, except for its terminator. The arguments of the block become the first arguments of the
    function."""
    *operations, _ = block.ops
    return _outline(module, operations, parent, f"{parent}/{number}", tuple(block.args))


def _outline(
    module: ModuleOp, operations: Sequence[Operation], parent: str, name: str, first: tuple[SSAValue, ...] = ()
) -> NestedStep:
    """Outline adjacent operations of a block as a function.

    `first`: the values that become the first arguments.
    """
    block = operations[0].parent
    enclosing_op = operations[0].parent_op()
    assert block is not None and enclosing_op is not None, "a step is inside an operation"
    # The runs are counted before the operations move, because a loop without its body has no known trip count.
    runs = runs_of(operations[0])
    order = Order.of(block)
    results = _results_read_outside(operations, order)
    captured = [value for value in _captured_values(operations, order) if value not in first]
    outside = (*first, *captured)
    inside = Block(arg_types=[value.type for value in outside])
    for argument, value in zip(inside.args, outside, strict=True):
        argument.name_hint = value.name_hint
    # The captured values stay live as operands of the placeholder.
    placeholder = UnrealizedConversionCastOp(operands=[captured], result_types=[[value.type for value in results]])
    block.insert_op_before(placeholder, operations[0])
    _move(operations, inside, None)
    for value, result in zip(results, placeholder.results, strict=True):
        value.replace_uses_with_if(result, lambda use: inside.find_ancestor_op_in_block(use.operation) is None)
    inside.add_op(ReturnOp(*results))
    for value, argument in zip(outside, inside.args, strict=True):
        value.replace_uses_with_if(argument, lambda use: inside.find_ancestor_op_in_block(use.operation) is not None)
    types = FunctionType.from_lists([value.type for value in outside], [value.type for value in results])
    function = FuncOp(name, types, Region(inside))
    function.location = enclosing_op.location
    module.body.block.add_op(function)
    return NestedStep(function, first, placeholder, parent, runs=runs)


def _results_read_outside(operations: Sequence[Operation], order: Order) -> list[OpResult]:
    """Return the results that other operations of the block, or their regions, read."""
    chosen = set(operations)
    return [
        result
        for op in operations
        for result in op.results
        if any(order.owner_here(use.operation) not in chosen for use in result.uses)
    ]


def _captured_values(operations: Sequence[Operation], order: Order) -> list[SSAValue]:
    """Return the values that the operations read and none of them defines, in order of use."""
    definitions = {result for op in operations for result in op.results}
    read = dict.fromkeys(value for op in operations for value in order.reads[order.position[op]])
    return [value for value in read if value not in definitions]


def _move(operations: Sequence[Operation], block: Block, before: Operation | None) -> None:
    for op in operations:
        op.detach()
        if before is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, before)


@contextmanager
def outline_temporarily(module: ModuleOp) -> Generator[None]:
    """Outline nested steps and per-device steps within the context, and restore them afterwards."""
    with device_steps_outlined(module):
        nested = outline_nested_steps(module)
        try:
            yield
        finally:
            put_back(nested)


def _blocks_of_steps(function: FuncOp) -> Iterator[Block]:
    inside = [op for op in every_operation(function) if op.regions and op is not function]
    for op in reversed(inside):
        for region in op.regions:
            yield from (block for block in region.blocks if _is_step(block))


def _is_step(block: Block) -> bool:
    """Return whether the block contains operations of both directions, according to any of the phase sources, and
    returns a value that it computes. A placeholder without results would be removed as dead code."""
    phase_sources, directions = sources(), set[Direction]()
    *operations, last = operations_in(block)
    if not any(isinstance(value, OpResult) and value.op.parent is block for value in last.operands):
        return False
    for op in operations:
        directions.update(stated for source in phase_sources if (stated := source.direction(op)) is not None)
    return directions >= {Direction.FORWARD, Direction.BACKWARD}


def _later_steps(block: Block) -> list[list[Operation]]:
    """Return the operations of each step but the first. A step extends to the start of the next one."""
    order = Order.of(block)
    *operations, _ = order.operations
    if any(stated_phase(op) is not None for op in operations):
        return []  # Stated phases determine which operations are forward operations.
    constants = order.constant_operations
    phase_sources = sources()
    direction = {
        op: Direction.NONE if op in constants else _direction(phase_sources, op) or Direction.NONE
        for op in order.operations
    }
    starts = step_starts(order, direction)
    return [operations[start:end] for start, end in pairwise((*starts[1:], len(operations)))]
