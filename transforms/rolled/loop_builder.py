"""Build counted loops and accesses to stacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.step.counted_loops import CountedLoop
from ...dialects.constants.dense import DenseAttr
from ...dialects.constants.elements import dtype_of
from ...dialects.stablehlo.attributes import ComparisonDirection, ComparisonType
from ...dialects.stablehlo.binary import AddOp, MultiplyOp, SubtractOp
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.compare_select import CompareOp
from ...dialects.stablehlo.control import ReturnOp, WhileOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp
from ...dialects.stablehlo.slices import DynamicSliceOp, DynamicUpdateSliceOp
from ...support.type_guards import is_tensor, is_unsigned


@dataclass(frozen=True)
class Builder:
    """Inserts operations at one point, all with the same location.

    Attributes:
        point: The insertion point.
        location: The location.
        counter_type: The type of loop counters.
    """

    point: InsertPoint
    location: LocationAttr
    counter_type: Attribute

    def add(self, op: Operation) -> Operation:
        """Insert an operation and return it."""
        op.location = self.location
        Rewriter.insert_op(op, self.point)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Insert an operation and return its first result."""
        return self.add(op).results[0]

    def integer(self, number: int) -> SSAValue:
        """Emit an integer constant of the type of loop counters."""
        return self.value(ConstantOp(DenseAttr.from_numpy(np.array(number), self._element)))

    def add_constant(self, value: SSAValue, number: int) -> SSAValue:
        """Emit `value + number`."""
        return value if number == 0 else self.value(AddOp(value, self.integer(number)))

    def subtract_from(self, number: int, value: SSAValue) -> SSAValue:
        """Emit `number - value`."""
        return self.value(SubtractOp(self.integer(number), value))

    def index_in_chunks(self, chunk: SSAValue, every: int, within: SSAValue) -> SSAValue:
        """Emit `chunk * every + within`."""
        return self.add_values(chunk if every == 1 else self.value(MultiplyOp(chunk, self.integer(every))), within)

    def add_values(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.value(AddOp(left, right))

    def table(self, numbers: Sequence[int]) -> SSAValue:
        """Emit a constant vector of integers, with the element type of loop counters."""
        return self.value(ConstantOp(DenseAttr.from_numpy(np.array(numbers), self._element)))

    def empty(self, slices: int, shape: Sequence[int], element: Attribute) -> SSAValue:
        """Emit a stack of zeros. All of them must be overwritten later."""
        zero = self.value(ConstantOp(DenseAttr.get(TensorType(element, []), bytes(dtype_of(element).itemsize))))
        return self.value(BroadcastInDimOp(zero, [], TensorType(element, [slices, *shape])))

    def as_slice(self, value: SSAValue) -> SSAValue:
        """Emit the value with an additional leading dimension of size 1."""
        shape = shape_of(value)
        return self.value(BroadcastInDimOp(value, range(1, len(shape) + 1), TensorType(element_of(value), [1, *shape])))

    def write(self, stack: SSAValue, part: SSAValue, index: SSAValue) -> SSAValue:
        """Emit an update of the stack that writes `part` at this index."""
        return self.value(DynamicUpdateSliceOp(stack, part, self._starts(stack, index)))

    def read(self, stack: SSAValue, index: SSAValue) -> SSAValue:
        """Emit a `dynamic_slice` of one row, whose leading dimension has size 1."""
        return self.value(DynamicSliceOp(stack, self._starts(stack, index), [1, *shape_of(stack)[1:]]))

    def read_value(self, stack: SSAValue, index: SSAValue) -> SSAValue:
        """Emit a `dynamic_slice` of one row without its leading dimension."""
        slice_ = self.read(stack, index)
        return self.value(ReshapeOp(slice_, TensorType(element_of(stack), shape_of(stack)[1:])))

    def loop(self, trips: int | SSAValue, initial: Sequence[SSAValue], emit_body: EmitBody) -> Sequence[SSAValue]:
        """Emit a loop with a counter from 0 to `trips` - 1. Return its final carries without the counter.

        Args:
            trips: The trip count.
            initial: The initial carries.
            emit_body: A function that emits the body.
        """
        start = self.integer(0)
        types = [self.counter_type, *(value.type for value in initial)]
        cond, body = Block(arg_types=types), Block(arg_types=types)
        for block in (cond, body):
            for argument, value in zip(block.args[1:], initial, strict=True):
                argument.name_hint = value.name_hint
        test, inside = self._in(cond), self._in(body)
        signed = ComparisonType.UNSIGNED if is_unsigned(self._element) else ComparisonType.SIGNED
        compare = CompareOp(
            cond.args[0], test.integer(trips) if isinstance(trips, int) else trips, ComparisonDirection.LT, signed
        )
        test.add(ReturnOp([test.value(compare)]))
        carried = emit_body(inside, body.args[0], body.args[1:])
        inside.add(ReturnOp([inside.add_constant(body.args[0], 1), *carried]))
        return self.add(WhileOp([start, *initial], Region(cond), Region(body))).results[1:]

    def _in(self, block: Block) -> Builder:
        return Builder(InsertPoint.at_end(block), self.location, self.counter_type)

    def _starts(self, stack: SSAValue, index: SSAValue) -> list[SSAValue]:
        zero = [self.integer(0)] if len(shape_of(stack)) > 1 else []
        return [index, *zero * (len(shape_of(stack)) - 1)]

    @property
    def _element(self) -> Attribute:
        assert is_tensor(self.counter_type), "a counter is a tensor"
        return self.counter_type.element_type


EmitBody = Callable[[Builder, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""A function that emits a loop body: (builder, counter, carries) -> next carries."""


def builder_before(loop: CountedLoop) -> Builder:
    """Return a builder that inserts before the loop, with the location and the counter type of the loop."""
    return Builder(InsertPoint.before(loop.op), loop.op.location, loop.block.args[loop.counter].type)
