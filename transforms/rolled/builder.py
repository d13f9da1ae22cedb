"""Build new loops and their bodies: operations one after the other, at one insertion point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.dense import DenseAttr
from ...dialects.elements import dtype_of
from ...dialects.stablehlo.binary import AddOp, MultiplyOp, SubtractOp
from ...dialects.stablehlo.checks import element_of, shape_of
from ...dialects.stablehlo.control import ReturnOp, WhileOp
from ...dialects.stablehlo.creation import ConstantOp
from ...dialects.stablehlo.dynamic import DynamicSliceOp, DynamicUpdateSliceOp
from ...dialects.stablehlo.elementwise import CompareOp
from ...dialects.stablehlo.enumerations import ComparisonDirection, ComparisonType
from ...dialects.stablehlo.shapes import BroadcastInDimOp, ReshapeOp
from ...support.type_guards import is_tensor, is_unsigned


@dataclass(frozen=True)
class Builder:
    """Adds operations at `point` with one location; counters have the type `index`."""

    point: InsertPoint
    location: LocationAttr
    index: Attribute

    def add(self, op: Operation) -> Operation:
        op.location = self.location
        Rewriter.insert_op(op, self.point)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Add an operation and return its first result."""
        return self.add(op).results[0]

    def number(self, number: int) -> SSAValue:
        return self.value(ConstantOp(DenseAttr.from_numpy(np.array(number), self._element)))

    def plus(self, value: SSAValue, number: int) -> SSAValue:
        return value if number == 0 else self.value(AddOp(value, self.number(number)))

    def minus_from(self, number: int, value: SSAValue) -> SSAValue:
        return self.value(SubtractOp(self.number(number), value))

    def of_chunk(self, chunk: SSAValue, every: int, within: SSAValue) -> SSAValue:
        """`chunk * every + within`."""
        return self.add_up(chunk if every == 1 else self.value(MultiplyOp(chunk, self.number(every))), within)

    def add_up(self, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.value(AddOp(left, right))

    def table(self, numbers: Sequence[int]) -> SSAValue:
        return self.value(ConstantOp(DenseAttr.from_numpy(np.array(numbers), self._element)))

    def empty(self, slices: int, shape: Sequence[int], element: Attribute) -> SSAValue:
        """A stack of zeros, all of which are overwritten."""
        zero = self.value(ConstantOp(DenseAttr.get(TensorType(element, []), bytes(dtype_of(element).itemsize))))
        return self.value(BroadcastInDimOp(zero, [], TensorType(element, [slices, *shape])))

    def as_slice(self, value: SSAValue) -> SSAValue:
        """The value with a first dimension of one."""
        shape = shape_of(value)
        return self.value(BroadcastInDimOp(value, range(1, len(shape) + 1), TensorType(element_of(value), [1, *shape])))

    def write(self, stack: SSAValue, part: SSAValue, place: SSAValue) -> SSAValue:
        return self.value(DynamicUpdateSliceOp(stack, part, self._starts(stack, place)))

    def read(self, stack: SSAValue, place: SSAValue) -> SSAValue:
        """The slice, with a first dimension of one."""
        return self.value(DynamicSliceOp(stack, self._starts(stack, place), [1, *shape_of(stack)[1:]]))

    def read_value(self, stack: SSAValue, place: SSAValue) -> SSAValue:
        """The slice, without its first dimension."""
        slice_ = self.read(stack, place)
        return self.value(ReshapeOp(slice_, TensorType(element_of(stack), shape_of(stack)[1:])))

    def loop(self, trips: int | SSAValue, initial: Sequence[SSAValue], fill: Fill) -> Sequence[SSAValue]:
        """Build a loop over 0 … trips - 1; returns the final carries without the counter."""
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
"""Fills a loop body: (builder, counter, carries) -> next carries."""
