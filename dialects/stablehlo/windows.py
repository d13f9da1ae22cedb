"""Pooling and its gradient. StableHLO prints both in the generic form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ..dense import to_numpy
from ..guards import is_standard_dense
from .checks import check_element, check_shape, check_types, element_of, shape_of
from .formats import I64Array
from .reduction import check_combiner
from .shapes import I64_ARRAY, is_static


@dataclass(frozen=True)
class Window:
    """How a window moves along one dimension."""

    size: int
    stride: int
    low: int
    high: int
    base_dilation: int
    window_dilation: int

    def places(self, extent: int) -> int:
        """At how many places the window fits into this extent."""
        padded = self.low + _dilated(extent, self.base_dilation) + self.high
        return max((padded - _dilated(self.size, self.window_dilation)) // self.stride + 1, 0)


def _dilated(extent: int, dilation: int) -> int:
    return (extent - 1) * dilation + 1 if extent else 0


def windows(
    sizes: Sequence[int],
    strides: I64Array | None,
    padding: Attribute | None,
    base_dilations: I64Array | None = None,
    window_dilations: I64Array | None = None,
) -> list[Window]:
    """One for each dimension; strides and dilations are one and padding is none where not given."""
    rank = len(sizes)
    fields = [_values(field, rank) for field in (strides, base_dilations, window_dilations)]
    pads = padding_of(padding) if padding is not None else [(0, 0)] * rank
    if any(len(field) != rank for field in (*fields, pads)):
        raise VerifyException(f"strides, padding and dilations are needed for each of {rank} dimensions")
    if any(value < 1 for field in fields for value in field):
        raise VerifyException("strides and dilations are positive")
    return [
        Window(size, stride, low, high, base, dilation)
        for size, stride, (low, high), base, dilation in zip(sizes, fields[0], pads, fields[1], fields[2], strict=True)
    ]


def _values(array: I64Array | None, rank: int) -> Sequence[int]:
    return (1,) * rank if array is None else array.get_values()


def padding_of(padding: Attribute) -> list[tuple[int, int]]:
    """Before and after each dimension, from a constant of that many pairs."""
    if not is_standard_dense(padding) or len(padding.get_shape()) != 2 or padding.get_shape()[1] != 2:
        raise VerifyException(f"padding is a constant of pairs, not {padding}")
    return [(int(low), int(high)) for low, high in to_numpy(padding)]


@irdl_op_definition
class ReduceWindowOp(IRDLOperation):
    """The elements under a window combined, for each place of the window."""

    name = "stablehlo.reduce_window"

    inputs = var_operand_def(TensorType)
    init_values = var_operand_def(TensorType)
    window_dimensions = prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    base_dilations = opt_prop_def(I64_ARRAY)
    window_dilations = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()
    result = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (SameVariadicOperandSize(),)

    def verify_(self) -> None:
        if not self.inputs or len(self.result) != len(self.inputs):
            raise VerifyException("each input, of which there is one at least, has one result")
        shape = shape_of(self.inputs[0])
        moves = windows(
            self.window_dimensions.get_values(),
            self.window_strides,
            self.padding,
            self.base_dilations,
            self.window_dilations,
        )
        if len(moves) != len(shape):
            raise VerifyException(f"window_dimensions are needed for each dimension of {self.inputs[0].type}")
        elements = check_combiner(self.body.block, [element_of(value) for value in self.inputs])
        for value, init, result, element in zip(self.inputs, self.init_values, self.result, elements, strict=True):
            check_shape("an input", shape_of(value), shape)
            check_shape("an initial value", shape_of(init), [])
            check_element("a result", element_of(result), element)
            if is_static(value):
                places = [move.places(extent) for move, extent in zip(moves, shape, strict=True)]
                check_shape("a result", shape_of(result), places)


@irdl_op_definition
class SelectAndScatterOp(IRDLOperation):
    """Each value of the source added to the element that a window over the operand selects: the gradient of pooling."""

    name = "stablehlo.select_and_scatter"

    operand = operand_def(TensorType)
    source = operand_def(TensorType)
    init_value = operand_def(TensorType)
    window_dimensions = opt_prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()
    result = result_def(TensorType)
    select = region_def("single_block")
    scatter = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        sizes = _values(self.window_dimensions, len(shape))
        moves = windows(sizes, self.window_strides, self.padding)
        if len(moves) != len(shape):
            raise VerifyException(f"window_dimensions are needed for each dimension of {self.operand.type}")
        if is_static(self.operand):
            places = [move.places(extent) for move, extent in zip(moves, shape, strict=True)]
            check_shape("the source", shape_of(self.source), places)
        check_shape("the initial value", shape_of(self.init_value), [])
        check_types("the result", self.result.type, self.operand.type)
        check_combiner(self.scatter.block, [element_of(self.source)])


WINDOWS: list[type[Operation]] = [ReduceWindowOp, SelectAndScatterOp]
