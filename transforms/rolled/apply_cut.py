"""Apply a loop cut: the reading loop recomputes the values that the writing loop no longer stacks.

    forward:   %s1 = dynamic_update_slice %s, tanh(%h), %i        forward:   %s1 = dynamic_update_slice %s, %h, %i
    backward:  %y  = dynamic_slice %s, 7 - %j               ->    backward:  %x  = dynamic_slice %s, 7 - %j
                                                                             %y  = tanh(%x)

The copies read loop-invariant values of the forward loop outside both loops. In the copies, the index of the iteration
that wrote the slice replaces the counter of the forward loop. No token is needed, because no operation moves from one
body into another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.copies.loop_cuts import LoopCut, invariant_source, look_through_reshapes
from ...analysis.step.counted_loops import Affine, CountedLoop
from ...analysis.step.jax_paths import path_of
from ...analysis.step.order import read_values
from ...analysis.step.stacks import Stack, StackRead
from ...dialects.channels import take_channels
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.control import WhileOp
from ...dialects.stablehlo.shapes import ReshapeOp
from ...dialects.stablehlo.slices import DynamicUpdateSliceOp
from ...support.operations import terminator_of
from ..plans.apply_plan import FreeNumbers, copy_of_original
from .carries import Replaced, append_carries, drop_dead_carries_of
from .loop_builder import Builder, builder_before
from .sink_broadcasts import sink_broadcasts


def apply_cut(cut: LoopCut, numbers: FreeNumbers, replaced: Replaced) -> int:
    """Rewrite both loops according to the cut. Return the number of copies.

    Earlier analyses of the loops become invalid.
    """
    pair = cut.pair
    first = pair.stacks[0]
    writer = append_carries(pair.writer.op, _empty_stacks(cut.new, pair.writer), replaced)
    added = writer.results[len(writer.results) - len(cut.new) :]
    for value, result in zip(cut.new, added, strict=True):
        _write_in_each_iteration(writer, result.index, value, first)
    stacked_values = [_StackedValue(value, writer.results[stack.index], stack.place) for value, stack in cut.kept]
    stacked_values += [_StackedValue(value, result, first.place) for value, result in zip(cut.new, added, strict=True)]
    cut = replace(cut, pair=replace(pair, writer=replace(pair.writer, op=writer)))
    copies = 0
    for written in dict.fromkeys(reading.written for reading in cut.dropped_reads):
        group = [reading for reading in cut.dropped_reads if reading.written == written]
        copies += _Recomputation(cut, numbers, written).replace(group, stacked_values)
    sink_broadcasts(pair.reader.op)
    drop_dead_carries_of(pair.reader.op, replaced)  # The reader comes first, since it reads results of the writer.
    drop_dead_carries_of(writer, replaced)
    return copies


@dataclass(frozen=True)
class _StackedValue:
    """A value in the body of the writing loop, and the stack to which it is written.

    `place`: the index in the stack, as a function of the iteration index n.
    """

    value: SSAValue
    stack: SSAValue
    place: Affine


def _empty_stacks(values: Sequence[SSAValue], loop: CountedLoop) -> list[SSAValue]:
    """Insert, before the loop, an empty stack for each of the given values of the loop's body."""
    builder = builder_before(loop)
    return [builder.empty(loop.trips, shape_of(value), element_of(value)) for value in values]


def _write_in_each_iteration(writer: WhileOp, index: int, value: SSAValue, like: Stack) -> None:
    """Write the value to a stack in each iteration, at the position at which the stack `like` is written.

    `index`: the index of the carry that holds the stack.
    """
    block = writer.body.block
    last = terminator_of(writer.body.block)
    update = last.operands[like.index].owner
    assert isinstance(update, DynamicUpdateSliceOp), "each update of a stack writes a slice"
    place = update.start_indices[0]
    builder = Builder(InsertPoint.before(last), last.location, place.type)
    last.operands[index] = builder.write(block.args[index], builder.as_slice(value), place)


@dataclass(frozen=True)
class _Recomputation:
    """A builder of the copies in the reading body.

    Attributes:
        cut: The cut.
        numbers: The free ids and channels.
        written: The iteration of the writing loop that the copies recompute, as a function of the reading loop's
            iteration index.
    """

    cut: LoopCut
    numbers: FreeNumbers
    written: Affine

    def replace(self, readings: Sequence[StackRead], stacked_values: Sequence[_StackedValue]) -> int:
        """Replace the reads with copies. The copies are inserted before the first read. Return the number of copies."""
        ops = {reading.op for reading in readings}
        first = next(op for op in self.cut.pair.reader.block.ops if op in ops)
        mapping = self._inputs(stacked_values, first)
        path = path_of(self.cut.pair.reader.op.location)
        copies = [
            copy_of_original(op, self.numbers.id_of(op), 1, lambda original: original.clone(mapping), path)
            for op in self.cut.repeated
        ]
        take_channels(copies, self.numbers.channels)
        Rewriter.insert_op(copies, InsertPoint.before(first))
        for reading in readings:
            slice_ = mapping[reading.stack.slice]
            _bypass_reshapes(reading.op.result, look_through_reshapes(slice_))
            reading.op.result.replace_all_uses_with(slice_)
            Rewriter.erase_op(reading.op)
        return len(copies)

    def _inputs(self, stacked_values: Sequence[_StackedValue], before: Operation) -> dict[SSAValue, SSAValue]:
        """Map the inputs of the copies (loop-invariant values, the counter and stacked values) to values that the
        reading body can read.

        New operations are inserted before the operation `before`.
        """
        writer = self.cut.pair.writer
        mapping = dict[SSAValue, SSAValue]()
        slices = [reading.stack.slice for reading in self.cut.dropped_reads]
        inputs = dict.fromkeys([*(value for op in self.cut.repeated for value in read_values(op)), *slices])
        for value in inputs:
            if (outside := invariant_source(value, writer)) is not None:
                mapping[value] = outside
        counter = writer.block.args[writer.counter]
        if counter in inputs:
            mapping[counter] = self._number(self._in_reader(Affine(1, writer.start)), counter.type, before)
        for stacked in stacked_values:
            if stacked.value in inputs:
                mapping[stacked.value] = self._slice(stacked, before)
        return mapping

    def _in_reader(self, place: Affine) -> Affine:
        """Convert a function of the writing loop's iteration index to a function of the reading loop's iteration
        index."""
        return Affine(place.scale * self.written.scale, place.scale * self.written.offset + place.offset)

    def _number(self, number: Affine, type_: Attribute, before: Operation) -> SSAValue:
        """Emit an affine function's value at the reading loop's iteration index, unless an equal value exists
        already."""
        reader = self.cut.pair.reader
        for op in _operations_before(before):
            if len(op.results) == 1 and op.results[0].type == type_ and reader.affine(op.results[0]) == number:
                return op.results[0]
        builder = self._builder(before)
        counter = reader.block.args[reader.counter]
        offset = number.offset - number.scale * reader.start
        match number.scale:
            case 0:
                return builder.integer(offset)
            case 1:
                return builder.add_constant(counter, offset)
            case _:
                return builder.subtract_from(offset, counter)

    def _slice(self, stacked: _StackedValue, before: Operation) -> SSAValue:
        """Emit a read of the stacked value, in the shape that it has in the writing loop."""
        builder = self._builder(before)
        place = self._number(self._in_reader(stacked.place), builder.counter_type, before)
        slice_ = builder.read(stacked.stack, place)
        return slice_ if slice_.type == stacked.value.type else builder.value(ReshapeOp(slice_, stacked.value.type))

    def _builder(self, before: Operation) -> Builder:
        reader = self.cut.pair.reader
        return Builder(InsertPoint.before(before), before.location, reader.block.args[reader.counter].type)


def _bypass_reshapes(slice_: SSAValue, value: SSAValue) -> None:
    """Redirect readers of reshapes of the slice to the value itself, so that equal conditions become one value."""
    for use in list(slice_.uses):
        if isinstance(use.operation, ReshapeOp) and use.operation.result.type == value.type:
            use.operation.result.replace_all_uses_with(value)


def _operations_before(op: Operation) -> Iterator[Operation]:
    """Yield the operations before `op`, beginning with the nearest one."""
    while (previous := op.prev_op) is not None:
        yield previous
        op = previous
