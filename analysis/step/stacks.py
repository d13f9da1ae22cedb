"""Stacks: tensors that one loop writes and a later loop reads, one slice per iteration.

    %r:3 = stablehlo.while(%i = 0, …, %s = %zeros) do { …; %s1 = dynamic_update_slice %s, %slice, %i, 0; … }
    …  stablehlo.while(%j = 0, …, %t = %r#2) do { …; %x = dynamic_slice %t, 7 - %j, 0; … }

The residuals of a `lax.scan` reach its backward pass as stacks. A `LoopPair` consists of a writing and a reading loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects.stablehlo.checks import shape_of
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp
from ...dialects.stablehlo.slices import DynamicSliceOp, DynamicUpdateSliceOp
from ...support.operations import operations_in
from .counted_loops import Affine, CountedLoop, counted_loop, is_bare, scalar_integer
from .views import value_bytes


@dataclass(frozen=True)
class Stack:
    """A result of a loop that holds one slice per iteration.

    Attributes:
        loop: The loop that writes the stack.
        index: The index of the result.
        slice: The value in the body that each iteration writes.
        place: The index in the first dimension to which iteration n writes, as a function of n. Each index is written
            exactly once.
    """

    loop: CountedLoop
    index: int
    slice: SSAValue
    place: Affine

    @property
    def value(self) -> OpResult:
        return self.loop.op.results[self.index]

    @property
    def bytes(self) -> int:
        """Bytes of the whole stack."""
        return value_bytes(self.value)


@dataclass(frozen=True)
class StackRead:
    """An operation that reads one slice of a stack per iteration.

    Attributes:
        stack: The stack.
        loop: The reading loop.
        op: The operation that reads the slice.
        written: The index of the iteration that wrote the slice, as a function of the iteration n of the reading loop.
    """

    stack: Stack
    loop: CountedLoop
    op: DynamicSliceOp
    written: Affine


@dataclass(frozen=True)
class LoopPair:
    """A loop that writes stacks, and a later loop that reads some of them.

    Attributes:
        writer, reader: The two loops.
        readings: The operations in the reading loop that read stacks.
        all_stacks: All stacks that the writing loop writes.
        only_read: The indices of the stacks whose uses, in all loops, only read slices.
        outputs: The indices of the stacks that a forward loop reads, if the directions of the loops are known.
    """

    writer: CountedLoop
    reader: CountedLoop
    readings: tuple[StackRead, ...]
    all_stacks: tuple[Stack, ...]
    only_read: frozenset[int]
    outputs: frozenset[int] = frozenset()

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The stacks that the reading loop reads."""
        read = {reading.stack.index for reading in self.readings}
        return tuple(stack for stack in self.all_stacks if stack.index in read)

    def reads_of(self, stacks: Iterable[Stack]) -> tuple[StackRead, ...]:
        """Return the reads of these stacks in the reading loop."""
        indices = {stack.index for stack in stacks}
        return tuple(reading for reading in self.readings if reading.stack.index in indices)


def stack_bytes(stacks: Iterable[Stack]) -> int:
    """Return the total bytes of the stacks."""
    return sum(stack.bytes for stack in stacks)


def loop_pairs(block: Block) -> Iterator[LoopPair]:
    """Yield the pairs of writing and reading loops in the block, in the order of the writing loops."""
    loops = {op: loop for op in operations_in(block) if (loop := counted_loop(op)) is not None}
    for writer in loops.values():
        candidates = (stack_of(writer, index) for index in range(len(writer.op.results)) if writer.is_bare)
        stacks = tuple(stack for stack in candidates if stack is not None)
        readings = dict[Operation, list[StackRead]]()
        only_read = frozenset(stack.index for stack in stacks if _collect_reads(stack, loops, readings))
        for op, own_readings in readings.items():
            yield LoopPair(writer, loops[op], tuple(own_readings), stacks, only_read)


def _collect_reads(
    stack: Stack, loops: Mapping[Operation, CountedLoop], readings: dict[Operation, list[StackRead]]
) -> bool:
    """Add the reads of the stack to `readings`, keyed by the reading loop. Return whether the stack has reads and no
    uses of any other kind."""
    is_all, is_read = True, False
    for source, user in _users(stack.value, loops):
        holder = user.parent_op()
        reader = loops.get(holder) if holder is not None else None
        reading = None if reader is None else _reading(stack, reader, user, source)
        if reading is None:
            is_all = False
        else:
            is_read = True
            readings.setdefault(reading.loop.op, []).append(reading)
    return is_all and is_read


def stack_of(loop: CountedLoop, index: int) -> Stack | None:
    """Return the loop's carry with the given index as a stack, or None if it is not a stack."""
    update, argument = loop.yielded[index], loop.block.args[index]
    op = update.op if isinstance(update, OpResult) else None
    if (
        not isinstance(op, DynamicUpdateSliceOp)
        or op.operand is not argument
        or op.parent is not loop.block
        or not is_bare(op)
    ):
        return None
    uses = [*argument.uses, *loop.op.cond.block.args[index].uses, *update.uses]
    if len(uses) > 2:  # Another operation reads slices that earlier iterations wrote.
        return None
    shape, part = shape_of(argument), shape_of(op.update)
    if shape[:1] != (loop.trips,) or part != (1, *shape[1:]) or not _start_at_zero(op.start_indices[1:]):
        return None
    place = loop.affine(op.start_indices[0])
    return Stack(loop, index, op.update, place) if place is not None and place.covers(loop.trips) else None


def _start_at_zero(starts: Sequence[SSAValue]) -> bool:
    return all(scalar_integer(start) == 0 for start in starts)


def _users(value: SSAValue, loops: Mapping[Operation, CountedLoop]) -> Iterator[tuple[SSAValue, Operation]]:
    """Yield the users of the value and of its reshapes. Each user comes with the value that it uses.

    If a loop carries the value unchanged, the users inside its regions are yielded instead of the loop.
    """
    for use in list(value.uses):
        op, loop = use.operation, loops.get(use.operation)
        if keeps_order(op) and op.parent_op() not in loops:
            yield from _users(op.results[0], loops)
        elif loop is not None and loop.is_invariant(use.index) and not any(loop.op.results[use.index].uses):
            yield from _in_regions(loop, use.index)
        else:
            yield value, op


def _in_regions(reader: CountedLoop, index: int) -> Iterator[tuple[SSAValue, Operation]]:
    last = reader.block.last_op
    for region in reader.op.regions:
        argument = region.block.args[index]
        yield from ((argument, use.operation) for use in argument.uses if use.operation is not last)


def keeps_order(op: Operation) -> bool:
    """Return whether the result has exactly the elements of the operand, in the same order."""
    if isinstance(op, BroadcastInDimOp):
        dimensions = list(op.broadcast_dimensions.get_values())
        return dimensions == sorted(dimensions) and value_bytes(op.operand) == value_bytes(op.result)
    return isinstance(op, ReshapeOp)


def _reading(stack: Stack, reader: CountedLoop, op: Operation, source: SSAValue) -> StackRead | None:
    if (
        not isinstance(op, DynamicSliceOp)
        or op.operand is not source
        or op.parent is not reader.block
        or not is_bare(op)
    ):
        return None
    if stack.loop.block.args[stack.loop.counter].type != reader.block.args[reader.counter].type:
        return None
    shape = shape_of(stack.value)
    if shape_of(source) != shape or shape_of(op.result) != (1, *shape[1:]):
        return None
    place = reader.affine(op.start_indices[0])
    if place is None or not _start_at_zero(op.start_indices[1:]) or not _is_within_stack(place, stack, reader):
        return None
    scale = stack.place.scale
    written = Affine(scale * place.scale, scale * (place.offset - stack.place.offset))
    return StackRead(stack, reader, op, written)


def _is_within_stack(place: Affine, stack: Stack, reader: CountedLoop) -> bool:
    """Return whether all indices are within the bounds of the stack, so that none is clamped."""
    return all(0 <= place.value_at(number) < stack.loop.trips for number in (0, reader.trips - 1))
