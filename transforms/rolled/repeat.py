"""Application of a cut of a loop: the reading loop recomputes the values that the writing loop no longer stacks.

    forward:   %s1 = dynamic_update_slice %s, tanh(%h), %i        forward:   %s1 = dynamic_update_slice %s, %h, %i
    backward:  %y  = dynamic_slice %s, 7 - %j               ->    backward:  %x  = dynamic_slice %s, 7 - %j
                                                                             %y  = tanh(%x)

Loop-invariant values of the forward loop are read from outside both loops; its counter is the number of the
iteration that wrote the slice. No token is needed, because no operation moves from one body into another.

Broadcasts that the body reads sink into it, since their results would be live as long as both loops. XLA does not hoist
them again, because it hoists nothing that is larger than its operands.

    %m = broadcast_in_dim %row : 4x128x128                  while … do {
    while … do { … %m … }                             ->      %m = broadcast_in_dim %row; … }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.copies.loop_cuts import LoopCut, invariant_source, look_through_reshapes
from ...analysis.step.counted_loops import Affine, CountedLoop
from ...analysis.step.jax_paths import path_of
from ...analysis.step.order import captured_values, read_values
from ...analysis.step.stacks import Stack, StackRead
from ...analysis.step.views import value_bytes
from ...dialects.channels import take_channels
from ...dialects.dense import DenseAttr
from ...dialects.elements import dtype_of
from ...dialects.stablehlo.binary import AddOp, SubtractOp
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.control import WhileOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp
from ...dialects.stablehlo.slices import DynamicSliceOp, DynamicUpdateSliceOp
from ...support.operations import name_of
from ..plans.apply_plan import FreeNumbers, copy_of_original
from .carries import Replaced, with_more_carries, without_dead_carries

_SHAPES = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert"})


def sink_broadcasts(loop: WhileOp) -> None:
    """Sink chains of shape operations whose result is larger than their operand, such as broadcasts, into the loop's
    body."""
    for outside, inside in list(_read_in_body(loop)):
        chain = _chain(outside)
        first = loop.body.block.first_op
        if not chain or first is None:
            continue
        mapping = dict[SSAValue, SSAValue]()
        copies = [op.clone(mapping) for op in chain]
        for copy in copies:
            # The copy runs in the loop, while the original may be in the forward pass.
            copy.location = loop.location
        Rewriter.insert_op(copies, InsertPoint.before(first))
        sunk = copies[-1].results[0]
        inside.replace_uses_with_if(sunk, lambda use: _is_read_in(loop, use.operation))


def _read_in_body(loop: WhileOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Yield each loop-invariant value as it is outside the loop and as it is in the body."""
    block, last = loop.body.block, loop.body.block.last_op
    assert last is not None, "verified: a body ends"
    for index, argument in enumerate(block.args):
        if last.operands[index] is argument:
            yield loop.operands[index], argument
    yield from ((value, value) for value in captured_values(loop))


def _is_read_in(loop: WhileOp, op: Operation) -> bool:
    """Return whether the operation is in the body, at any depth, and is not its terminator."""
    current: Operation | None = op
    while current is not None and current.parent is not loop.body.block:
        current = current.parent_op()
    return current is not None and current is not loop.body.block.last_op


def _chain(value: SSAValue) -> list[Operation]:
    """Return the reshapes, broadcasts and casts that compute the value from their smallest operand, in program order.

    Empty if no operand in the chain is smaller than the value.
    """
    chain, smallest, best = list[Operation](), value_bytes(value), 0
    while isinstance(value, OpResult) and name_of(value.op) in _SHAPES:
        chain.append(value.op)
        value = value.op.operands[0]
        if value_bytes(value) < smallest:
            smallest, best = value_bytes(value), len(chain)
    return chain[:best][::-1]


def repeat(cut: LoopCut, numbers: FreeNumbers, replaced: Replaced) -> int:
    """Rewrite both loops by the cut, which invalidates analyses of them, and return the number of copies."""
    link = cut.link
    first = link.stacks[0]
    writer = with_more_carries(link.writer.op, [_empty_stack(value, link.writer) for value in cut.new], replaced)
    added = writer.results[len(writer.results) - len(cut.new) :]
    for value, result in zip(cut.new, added, strict=True):
        _write(writer, result.index, value, first)
    kept = [StackedValue(value, writer.results[stack.index], stack.place) for value, stack in cut.kept]
    kept += [StackedValue(value, result, first.place) for value, result in zip(cut.new, added, strict=True)]
    cut = replace(cut, link=replace(link, writer=replace(link.writer, op=writer)))
    copies = 0
    for written in dict.fromkeys(reading.written for reading in cut.dropped_reads):
        group = [reading for reading in cut.dropped_reads if reading.written == written]
        copies += _Repetition(cut, numbers, written).instead_of(group, kept)
    sink_broadcasts(link.reader.op)
    without_dead_carries(link.reader.op, replaced)  # First: it reads results of the writer.
    without_dead_carries(writer, replaced)
    return copies


@dataclass(frozen=True)
class StackedValue:
    """A value of the writing body and the stack that holds it.

    `place`: the index in the stack for iteration n.
    """

    value: SSAValue
    stack: SSAValue
    place: Affine


def _empty_stack(value: SSAValue, loop: CountedLoop) -> SSAValue:
    """Insert a stack of zeros before the loop; each element is overwritten later."""
    element = element_of(value)
    zero = ConstantOp(DenseAttr.get(TensorType(element, []), bytes(dtype_of(element).itemsize)))
    zeros = BroadcastInDimOp(zero.output, [], TensorType(element, [loop.trips, *shape_of(value)]))
    for op in (zero, zeros):
        op.location = loop.op.location
    Rewriter.insert_op([zero, zeros], InsertPoint.before(loop.op))
    return zeros.result


def _write(writer: WhileOp, index: int, value: SSAValue, like: Stack) -> None:
    """Write the value into the carry in each iteration, at the same index as the stack `like`."""
    block, last = writer.body.block, writer.body.block.last_op
    assert last is not None, "verified: a body ends"
    beside = last.operands[like.index].owner
    assert isinstance(beside, DynamicUpdateSliceOp), "a stack is updated by a slice"
    starts, shape = beside.start_indices, shape_of(value)
    slice_ = BroadcastInDimOp(value, range(1, len(shape) + 1), TensorType(element_of(value), [1, *shape]))
    zero = _constant(0, starts[0])
    updated = DynamicUpdateSliceOp(block.args[index], slice_.result, [starts[0], *[zero.output] * len(shape)])
    for op in (slice_, zero, updated):
        op.location = last.location
    Rewriter.insert_op([slice_, zero, updated], InsertPoint.before(last))
    last.operands[index] = updated.result


def _constant(number: int, like: SSAValue) -> ConstantOp:
    return ConstantOp(DenseAttr.from_numpy(np.array(number), element_of(like)))


@dataclass(frozen=True)
class _Repetition:
    """Builder of the copies in the reading body.

    They recompute the iteration of the writing loop given by `written`, a function of the reading loop's iteration
    number.
    """

    cut: LoopCut
    numbers: FreeNumbers
    written: Affine

    def instead_of(self, readings: Sequence[StackRead], kept: Sequence[StackedValue]) -> int:
        """Replace the reads by copies, inserted before the first one; return the number of copies."""
        ops = {reading.op for reading in readings}
        place = next(op for op in self.cut.link.reader.block.ops if op in ops)
        mapping = self._inputs(kept, place)
        reader = path_of(self.cut.link.reader.op.location)
        copies = [
            copy_of_original(op, self.numbers.id_of(op), 1, lambda original: original.clone(mapping), reader)
            for op in self.cut.repeated
        ]
        take_channels(copies, self.numbers.channels)
        Rewriter.insert_op(copies, InsertPoint.before(place))
        for reading in readings:
            slice_ = mapping[reading.stack.slice]
            _read_unsliced(reading.op.result, look_through_reshapes(slice_))
            reading.op.result.replace_all_uses_with(slice_)
            reading.op.detach()
            reading.op.erase()
        return len(copies)

    def _inputs(self, kept: Sequence[StackedValue], before: Operation) -> dict[SSAValue, SSAValue]:
        """Map the inputs of the copies to values in the reading body: loop-invariant values, the counter, and slices of
        stacks."""
        writer, mapping = self.cut.link.writer, dict[SSAValue, SSAValue]()
        read = dict.fromkeys(value for op in self.cut.repeated for value in read_values(op))
        inputs = [*read, *(reading.stack.slice for reading in self.cut.dropped_reads)]
        for value in dict.fromkeys(inputs):
            if (outside := invariant_source(value, writer)) is not None:
                mapping[value] = outside
        counter = writer.block.args[writer.counter]
        if counter in read:
            mapping[counter] = self._number(self._of_reader(1, writer.start), counter, before)
        for stacked in kept:
            if stacked.value in read or any(stacked.value is reading.stack.slice for reading in self.cut.dropped_reads):
                mapping[stacked.value] = self._slice(stacked, before)
        return mapping

    def _of_reader(self, scale: int, offset: int) -> Affine:
        """Return `scale * written + offset` as a function of the reading loop's iteration number."""
        return Affine(scale * self.written.scale, scale * self.written.offset + offset)

    def _number(self, number: Affine, like: SSAValue, before: Operation) -> SSAValue:
        """Emit a function of the reading loop's iteration number, or reuse an equal value."""
        reader = self.cut.link.reader
        for op in _before(before):
            if len(op.results) == 1 and op.results[0].type == like.type and reader.affine(op.results[0]) == number:
                return op.results[0]
        counter = reader.block.args[reader.counter]
        offset = number.offset - number.scale * reader.start
        constant = _constant(offset, counter)
        match number.scale:
            case 0:
                new: list[Operation] = [constant]
            case 1 if offset == 0:
                return counter
            case 1:
                new = [constant, AddOp(counter, constant.output)]
            case _:
                new = [constant, SubtractOp(constant.output, counter)]
        _insert(new, before, before.location)
        return new[-1].results[0]

    def _slice(self, stacked: StackedValue, before: Operation) -> SSAValue:
        """Emit a read of the stacked value, in its own shape."""
        own = shape_of(stacked.stack)[1:]
        counter = self.cut.link.reader.block.args[self.cut.link.reader.counter]
        place = self._number(self._of_reader(stacked.place.scale, stacked.place.offset), counter, before)
        zero = _constant(0, counter)
        slice_ = DynamicSliceOp(stacked.stack, [place, *[zero.output] * len(own)], [1, *own])
        new: list[Operation] = [zero, slice_]
        if slice_.result.type != stacked.value.type:
            new.append(ReshapeOp(slice_.result, stacked.value.type))
        _insert(new, before, before.location)
        return new[-1].results[0]


def _read_unsliced(slice_: SSAValue, value: SSAValue) -> None:
    """Redirect reshapes of the slice to the value itself, so that two conditionals have the same condition."""
    for use in list(slice_.uses):
        if isinstance(use.operation, ReshapeOp) and use.operation.result.type == value.type:
            use.operation.result.replace_all_uses_with(value)


def _before(op: Operation) -> Iterator[Operation]:
    """Yield the operations before `op`, the nearest first."""
    while (previous := op.prev_op) is not None:
        yield previous
        op = previous


def _insert(new: Sequence[Operation], before: Operation, location: LocationAttr) -> None:
    for op in new:
        op.location = location
    Rewriter.insert_op(new, InsertPoint.before(before))
