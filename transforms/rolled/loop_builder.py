"""Builder of loops, and of the operations of one loop's iterations inside another loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.copies.loop_chunks import LoopPart
from ...analysis.step.counted_loops import CountedLoop
from ...analysis.step.stacks import Stack
from ...dialects.channels import take_channels
from ...dialects.dense import DenseAttr
from ...dialects.elements import dtype_of
from ...dialects.names import Names
from ...dialects.stablehlo.attributes import ComparisonDirection, ComparisonType
from ...dialects.stablehlo.binary import AddOp, MultiplyOp, SubtractOp
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.control import ReturnOp, WhileOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.elementwise import CompareOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp
from ...dialects.stablehlo.slices import DynamicSliceOp, DynamicUpdateSliceOp
from ...support.operations import every_operation
from ...support.type_guards import is_tensor, is_unsigned
from ..plans.apply_plan import FreeNumbers, copy_of_original


@dataclass(frozen=True)
class Builder:
    """Inserts operations at `point`, all with one location.

    `index`: the type of counters.
    """

    point: InsertPoint
    location: LocationAttr
    index: Attribute

    def add(self, op: Operation) -> Operation:
        """Insert an operation and return it."""
        op.location = self.location
        Rewriter.insert_op(op, self.point)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Insert an operation and return its first result."""
        return self.add(op).results[0]

    def number(self, number: int) -> SSAValue:
        """Emit an integer constant that has the type of the loop counter."""
        return self.value(ConstantOp(DenseAttr.from_numpy(np.array(number), self._element)))

    def plus(self, value: SSAValue, number: int) -> SSAValue:
        """Emit `value + number`."""
        return value if number == 0 else self.value(AddOp(value, self.number(number)))

    def minus_from(self, number: int, value: SSAValue) -> SSAValue:
        """Emit `number - value`."""
        return self.value(SubtractOp(self.number(number), value))

    def of_chunk(self, chunk: SSAValue, every: int, within: SSAValue) -> SSAValue:
        """Emit `chunk * every + within`."""
        return self.add_up(chunk if every == 1 else self.value(MultiplyOp(chunk, self.number(every))), within)

    def add_up(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.value(AddOp(left, right))

    def table(self, numbers: Sequence[int]) -> SSAValue:
        """Emit a vector constant of integers that have the element type of the loop counter."""
        return self.value(ConstantOp(DenseAttr.from_numpy(np.array(numbers), self._element)))

    def empty(self, slices: int, shape: Sequence[int], element: Attribute) -> SSAValue:
        """Emit a stack of zeros; each element is overwritten later."""
        zero = self.value(ConstantOp(DenseAttr.get(TensorType(element, []), bytes(dtype_of(element).itemsize))))
        return self.value(BroadcastInDimOp(zero, [], TensorType(element, [slices, *shape])))

    def as_slice(self, value: SSAValue) -> SSAValue:
        """Emit the value with a leading dimension of 1."""
        shape = shape_of(value)
        return self.value(BroadcastInDimOp(value, range(1, len(shape) + 1), TensorType(element_of(value), [1, *shape])))

    def write(self, stack: SSAValue, part: SSAValue, place: SSAValue) -> SSAValue:
        """Emit the stack with `part` written at the index `place`."""
        return self.value(DynamicUpdateSliceOp(stack, part, self._starts(stack, place)))

    def read(self, stack: SSAValue, place: SSAValue) -> SSAValue:
        """Emit a `dynamic_slice` of one row; the result keeps a leading dimension of 1."""
        return self.value(DynamicSliceOp(stack, self._starts(stack, place), [1, *shape_of(stack)[1:]]))

    def read_value(self, stack: SSAValue, place: SSAValue) -> SSAValue:
        """Emit a `dynamic_slice` of one row without its leading dimension."""
        slice_ = self.read(stack, place)
        return self.value(ReshapeOp(slice_, TensorType(element_of(stack), shape_of(stack)[1:])))

    def loop(self, trips: int | SSAValue, initial: Sequence[SSAValue], fill: Fill) -> Sequence[SSAValue]:
        """Emit a loop over 0 … `trips` - 1, and return the final carries without the counter.

        Args:
            trips: The trip count.
            initial: The initial carries.
            fill: Emits the body.
        """
        start = self.number(0)
        types = [self.index, *(value.type for value in initial)]
        cond, body = Block(arg_types=types), Block(arg_types=types)
        for block in (cond, body):
            for argument, value in zip(block.args[1:], initial, strict=True):
                argument.name_hint = value.name_hint
        test, inside = self._in(cond), self._in(body)
        signed = ComparisonType.UNSIGNED if is_unsigned(self._element) else ComparisonType.SIGNED
        compare = CompareOp(
            cond.args[0], test.number(trips) if isinstance(trips, int) else trips, ComparisonDirection.LT, signed
        )
        test.add(ReturnOp([test.value(compare)]))
        carried = fill(inside, body.args[0], body.args[1:])
        inside.add(ReturnOp([inside.plus(body.args[0], 1), *carried]))
        return self.add(WhileOp([start, *initial], Region(cond), Region(body))).results[1:]

    def _in(self, block: Block) -> Builder:
        return Builder(InsertPoint.at_end(block), self.location, self.index)

    def _starts(self, stack: SSAValue, place: SSAValue) -> list[SSAValue]:
        zero = [self.number(0)] if len(shape_of(stack)) > 1 else []
        return [place, *zero * (len(shape_of(stack)) - 1)]

    @property
    def _element(self) -> Attribute:
        assert is_tensor(self.index), "a counter is a tensor"
        return self.index.element_type


Fill = Callable[[Builder, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""Emits a loop body: (builder, counter, carries) -> next carries."""


Mapping = dict[SSAValue, SSAValue]
"""Maps values of the original body to values of the new body."""
Repeat = Callable[[Operation, Mapping], Operation]
"""Clones an operation and adds its results to the mapping."""
ExtraValues = Callable[[Builder, SSAValue], Mapping]
"""Provides additional values of an iteration: (builder, iteration number) -> mapping."""


def clone_once(op: Operation, mapping: Mapping) -> Operation:
    """Clone an operation whose original is erased, so that the clone keeps its id."""
    return op.clone(mapping)


def clone_duplicate(numbers: FreeNumbers) -> Repeat:
    """Return a function that clones operations which also stay elsewhere: ids are dropped and channels renumbered."""

    def repeat(op: Operation, mapping: Mapping) -> Operation:
        copy = op.clone(mapping)
        for inner in every_operation(copy):
            if Names.COPY not in inner.attributes:
                inner.attributes.pop(Names.ID, None)
        take_channels([copy], numbers.channels)
        return copy

    return repeat


def clone_as_copy(numbers: FreeNumbers) -> Repeat:
    """Return a function that clones operations as copies, with the ids of their originals."""

    def repeat(op: Operation, mapping: Mapping) -> Operation:
        copy = copy_of_original(op, numbers.id_of(op), 1, lambda original: original.clone(mapping))
        take_channels([copy], numbers.channels)
        return copy

    return repeat


@dataclass(frozen=True)
class IterationNumber:
    """The counter of the whole loop in iteration n of a chunk: `start + chunk * every + n`, or `start + n` without
    chunks."""

    start: int
    every: int = 0
    chunk: SSAValue | None = None

    def emit(self, place: Builder, n: SSAValue) -> SSAValue:
        """Emit the counter in iteration `n`."""
        inside = n if self.chunk is None else place.of_chunk(self.chunk, self.every, n)
        return place.plus(inside, self.start)


@dataclass(frozen=True)
class Iterations:
    """The part of a loop's body that computes the needed carries; loop-invariant values are read from outside."""

    loop: CountedLoop
    needs: LoopPart

    def run(
        self,
        place: Builder,
        trips: int | SSAValue,
        begin: Sequence[SSAValue],
        number: IterationNumber,
        repeat: Repeat,
        extra: ExtraValues | None = None,
    ) -> Sequence[SSAValue]:
        """Emit a loop over `trips` iterations that begins with iteration `number`; return the carries after it.

        Args:
            place: The builder.
            trips: The trip count.
            begin: The carries at the beginning.
            number: The counter of the original loop, as a function of the counter of the new loop.
            repeat: Clones the operations.
            extra: Additional values of each iteration.
        """

        def fill(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            extra_values = {} if extra is None else extra(inside, n)
            mapping = self.mapping(inside, number.emit(inside, n), carried) | extra_values
            self.write(inside, mapping, repeat)
            return self.following(mapping)

        return place.loop(trips, begin, fill)

    def mapping(self, place: Builder, counter: SSAValue, carried: Sequence[SSAValue]) -> Mapping:
        """Return the values of an iteration's inputs: carries, counter, and loop-invariant values."""
        block, loop = self.loop.block, self.loop
        mapping: Mapping = {block.args[index]: value for index, value in zip(self.needs.carries, carried, strict=True)}
        mapping[block.args[loop.counter]] = counter
        for argument in block.args:
            if loop.is_invariant(argument.index):
                mapping[argument] = loop.op.operands[argument.index]
        return mapping

    def write(self, place: Builder, mapping: Mapping, repeat: Repeat) -> None:
        """Emit the operations of an iteration, and add their results to the mapping."""
        for op in self.needs.operations:
            Rewriter.insert_op(repeat(op, mapping), place.point)

    def following(self, mapping: Mapping) -> list[SSAValue]:
        """Return the carries that the iteration yields."""
        yielded = self.loop.yielded
        return [mapping.get(yielded[index], yielded[index]) for index in self.needs.carries]


@dataclass(frozen=True)
class Rerun:
    """A second run of some iterations of a loop, for the slices that it stacks."""

    loop: CountedLoop
    needs: LoopPart
    stacks: Sequence[Stack]

    def run(
        self, place: Builder, trips: int, begin: Sequence[SSAValue], number: IterationNumber, numbers: FreeNumbers
    ) -> Sequence[SSAValue]:
        """Emit the loop, and return stacks with the slices of these iterations alone, in loop order."""
        iterations, slices = Iterations(self.loop, self.needs), [stack.slice for stack in self.stacks]
        empty = [place.empty(trips, shape_of(slice_)[1:], element_of(slice_)) for slice_ in slices]

        def fill(inside: Builder, n: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            carries, stacks = carried[: len(begin)], carried[len(begin) :]
            mapping = iterations.mapping(inside, number.emit(inside, n), carries)
            iterations.write(inside, mapping, clone_as_copy(numbers))
            parts = [mapping.get(slice_, slice_) for slice_ in slices]
            written = [inside.write(stack, part, n) for stack, part in zip(stacks, parts, strict=True)]
            return [*iterations.following(mapping), *written]

        return place.loop(trips, [*begin, *empty], fill)[len(begin) :]
