"""Carry a cut of a loop out: the loop that reads computes again what is not kept.

    forward:   %s1 = dynamic_update_slice %s, tanh(%h), %i        forward:   %s1 = dynamic_update_slice %s, %h, %i
    backward:  %y  = dynamic_slice %s, 7 - %j               ->    backward:  %x  = dynamic_slice %s, 7 - %j
                                                                             %y  = tanh(%x)

What the forward loop does not change is read as it is around both loops; its counter is the number of the iteration
that has written the slice. No token is needed: nothing moves from one body into another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.copies.loop_cuts import LoopCut, given, seen_through
from ...analysis.step.counted_loops import Affine, CountedLoop
from ...analysis.step.jax_paths import path_of
from ...analysis.step.order import read_values
from ...analysis.step.stacks import Reading, Stack
from ...dialects.channels import take_channels
from ...dialects.dense import DenseAttr
from ...dialects.elements import dtype_of
from ...dialects.stablehlo.binary import AddOp, SubtractOp
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.control import WhileOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.dynamic import DynamicSliceOp, DynamicUpdateSliceOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp
from ..plans.apply_plan import Numbers
from ..plans.copies import copy_of_original
from .carries import Replaced, with_more_carries, without_dead_carries
from .sink import sink_broadcasts


def repeat(cut: LoopCut, numbers: Numbers, replaced: Replaced) -> int:
    """How many copies are made. The loops are replaced by others; whatever was found out about them before is void."""
    link = cut.link
    first = link.stacks[0]
    writer = with_more_carries(link.writer.op, [_empty_stack(value, link.writer) for value in cut.new], replaced)
    added = writer.results[len(writer.results) - len(cut.new) :]
    for value, result in zip(cut.new, added, strict=True):
        _write(writer, result.index, value, first)
    kept = [Standing(value, writer.results[stack.index], stack.place) for value, stack in cut.kept]
    kept += [Standing(value, result, first.place) for value, result in zip(cut.new, added, strict=True)]
    cut = replace(cut, link=replace(link, writer=replace(link.writer, op=writer)))
    copies = 0
    for written in dict.fromkeys(reading.written for reading in cut.replaced):
        group = [reading for reading in cut.replaced if reading.written == written]
        copies += _Repeated(cut, numbers, written).instead_of(group, kept)
    sink_broadcasts(link.reader.op)
    without_dead_carries(link.reader.op, replaced)  # First: it reads what the other hands on.
    without_dead_carries(writer, replaced)
    return copies


@dataclass(frozen=True)
class Standing:
    """A value of the writing body, and the stack that holds it: the one of iteration n at `place` of n."""

    value: SSAValue
    stack: SSAValue
    place: Affine


def _empty_stack(value: SSAValue, loop: CountedLoop) -> SSAValue:
    """Zeros in front of the loop: each of them is overwritten."""
    element = element_of(value)
    zero = ConstantOp(DenseAttr.get(TensorType(element, []), bytes(dtype_of(element).itemsize)))
    zeros = BroadcastInDimOp(zero.output, [], TensorType(element, [loop.trips, *shape_of(value)]))
    for op in (zero, zeros):
        op.location = loop.op.location
    Rewriter.insert_op([zero, zeros], InsertPoint.before(loop.op))
    return zeros.result


def _write(writer: WhileOp, index: int, value: SSAValue, like: Stack) -> None:
    """Have the carry take the value in each iteration, at the same place as another stack does."""
    block, last = writer.body.block, writer.body.block.last_op
    assert last is not None, "verified: a body ends"
    beside = last.operands[like.index].owner
    assert isinstance(beside, DynamicUpdateSliceOp), "what a stack is"
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
class _Repeated:
    """The copies in the reading body that stand for what iteration `written` of the writing loop computes."""

    cut: LoopCut
    numbers: Numbers
    written: Affine

    def instead_of(self, readings: Sequence[Reading], kept: Sequence[Standing]) -> int:
        """Copies in front of the first of the readings, which go; how many."""
        ops = {reading.op for reading in readings}
        place = next(op for op in self.cut.link.reader.block.ops if op in ops)
        mapping = self._known(kept, place)
        reader = path_of(self.cut.link.reader.op.location)
        copies = [copy_of_original(op, self.numbers.id_of(op), 1, mapping, reader) for op in self.cut.again]
        take_channels(copies, self.numbers.channels)
        Rewriter.insert_op(copies, InsertPoint.before(place))
        for reading in readings:
            slice_ = mapping[reading.stack.slice]
            _read_unsliced(reading.op.result, seen_through(slice_))
            reading.op.result.replace_all_uses_with(slice_)
            reading.op.detach()
            reading.op.erase()
        return len(copies)

    def _known(self, kept: Sequence[Standing], before: Operation) -> dict[SSAValue, SSAValue]:
        """What the copies begin with: what is the same in each iteration, the counter, and slices of stacks."""
        writer, mapping = self.cut.link.writer, dict[SSAValue, SSAValue]()
        read = dict.fromkeys(value for op in self.cut.again for value in read_values(op))
        wanted = [*read, *(reading.stack.slice for reading in self.cut.replaced)]
        for value in dict.fromkeys(wanted):
            if (outside := given(value, writer)) is not None:
                mapping[value] = outside
        counter = writer.block.args[writer.counter]
        if counter in read:
            mapping[counter] = self._number(self._of_reader(1, writer.start), counter, before)
        for one in kept:
            if one.value in read or any(one.value is reading.stack.slice for reading in self.cut.replaced):
                mapping[one.value] = self._slice(one, before)
        return mapping

    def _of_reader(self, scale: int, offset: int) -> Affine:
        """`scale * written + offset`, of the reading loop's number."""
        return Affine(scale * self.written.scale, scale * self.written.offset + offset)

    def _number(self, what: Affine, like: SSAValue, before: Operation) -> SSAValue:
        """The number as the reading loop computes it from its counter."""
        reader = self.cut.link.reader
        for op in _before(before):
            if len(op.results) == 1 and op.results[0].type == like.type and reader.affine(op.results[0]) == what:
                return op.results[0]
        counter = reader.block.args[reader.counter]
        offset = what.offset - what.scale * reader.start
        constant = _constant(offset, counter)
        match what.scale:
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

    def _slice(self, one: Standing, before: Operation) -> SSAValue:
        """The slice that is kept in the stack, in the shape of the value."""
        own = shape_of(one.stack)[1:]
        counter = self.cut.link.reader.block.args[self.cut.link.reader.counter]
        place = self._number(self._of_reader(one.place.scale, one.place.offset), counter, before)
        zero = _constant(0, counter)
        slice_ = DynamicSliceOp(one.stack, [place, *[zero.output] * len(own)], [1, *own])
        new: list[Operation] = [zero, slice_]
        if slice_.result.type != one.value.type:
            new.append(ReshapeOp(slice_.result, one.value.type))
        _insert(new, before, before.location)
        return new[-1].results[0]


def _read_unsliced(slice_: SSAValue, value: SSAValue) -> None:
    """Have those who take the extent of 1 off the slice read the value itself: two conditionals have one condition."""
    for use in list(slice_.uses):
        if isinstance(use.operation, ReshapeOp) and use.operation.result.type == value.type:
            use.operation.result.replace_all_uses_with(value)


def _before(op: Operation) -> Iterator[Operation]:
    """The operations in front of it, the nearest first."""
    while (previous := op.prev_op) is not None:
        yield previous
        op = previous


def _insert(new: Sequence[Operation], before: Operation, location: LocationAttr) -> None:
    for op in new:
        op.location = location
    Rewriter.insert_op(new, InsertPoint.before(before))
