"""Windows that move over a tensor, for convolutions and pooling, and the operations for pooling and its gradient.

StableHLO prints the operations in generic form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, i1, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import AnyDense, AnyTensor, is_integer_array, is_standard_dense
from ..constants.dense import to_numpy
from .checks import Constraint, OpT, check_count, check_element, check_shape, element_of, shape_of, verify_constraints
from .control import check_all, returned_types
from .formats import I64Array
from .reduction import (
    ReducingOp,
    check_body,
    check_counts,
    check_inits,
    check_promotable,
    check_result_elements,
    check_same_shapes,
    check_scalars,
    combined_types,
)
from .shapes import I64_ARRAY
from .tensors import numbers


@dataclass(frozen=True)
class DimWindow:
    """The extent, stride, padding and dilations of a window along one dimension."""

    size: int
    stride: int
    low: int
    high: int
    base_dilation: int
    window_dilation: int

    def places(self, extent: int) -> int:
        """Return the number of window positions along a dimension of the given extent.

        The number is `DYNAMIC_INDEX` if the extent of the dimension or of the window is dynamic.
        """
        if DYNAMIC_INDEX in (extent, self.size):
            return DYNAMIC_INDEX
        padded = self.low + _dilated_extent(extent, self.base_dilation) + self.high
        return max((padded - _dilated_extent(self.size, self.window_dilation)) // self.stride + 1, 0)


def _dilated_extent(extent: int, dilation: int) -> int:
    return (extent - 1) * dilation + 1 if extent else 0


def windows(
    sizes: Sequence[int],
    strides: I64Array | None,
    padding: Attribute | None,
    base_dilations: I64Array | None = None,
    window_dilations: I64Array | None = None,
) -> list[DimWindow]:
    """Return the window along each dimension. Missing strides and dilations are 1; missing padding is 0."""
    fields = [or_ones(field, len(sizes)) for field in (strides, base_dilations, window_dilations)]
    pads = padding_of(padding, len(sizes))
    return [
        DimWindow(size=size, stride=stride, low=low, high=high, base_dilation=base, window_dilation=dilation)
        for size, stride, (low, high), base, dilation in zip(sizes, fields[0], pads, fields[1], fields[2], strict=True)
    ]


def or_ones(array: I64Array | None, rank: int) -> Sequence[int]:
    """Return the values of the array, or `rank` ones if the array is missing or empty."""
    return array.get_values() if array is not None and len(array) else (1,) * rank


def padding_of(padding: Attribute | None, rank: int) -> list[tuple[int, int]]:
    """Return the padding before and after each dimension; zeros if the padding is missing."""
    if padding is None:
        return [(0, 0)] * rank
    # Check the type before the data are expanded: a splat of a few characters may have any number of rows.
    (count, _) = _check_pairs(padding).get_shape()
    if count not in (0, rank):
        raise VerifyException(f"padding has {count} pairs, expected {rank}")
    return pairs_of(padding) or [(0, 0)] * rank


def pairs_of(padding: Attribute) -> list[tuple[int, int]]:
    """Return the rows of a padding constant as pairs."""
    return [(int(low), int(high)) for low, high in to_numpy(_check_pairs(padding))]


def _check_pairs(padding: Attribute) -> AnyDense:
    if not is_standard_dense(padding) or padding.get_element_type() != i64 or padding.get_shape()[1:] != (2,):
        raise VerifyException("padding must be a constant of type tensor<Nx2xi64>")
    return padding


def check_positive(subject: str, values: Sequence[int]) -> None:
    if any(value < 1 for value in values):
        raise VerifyException(f"{subject} {list(values)} must be positive")


def moving(fields: Mapping[str, tuple[str, str]], rank: Callable[[OpT], int]) -> list[Constraint[OpT]]:
    """Return two constraints on optional properties: each property has one number for each of `rank` dimensions, and
    all numbers are positive.

    `fields`: the labels of these two constraints, by property name.
    """

    def counted(name: str) -> Callable[[OpT], None]:
        return lambda op: check_count(name, len(or_ones(_array(op, name), rank(op))), rank(op))

    def positive(name: str) -> Callable[[OpT], None]:
        return lambda op: check_positive(name, or_ones(_array(op, name), rank(op)))

    return [
        constraint
        for name, (of_count, of_values) in fields.items()
        for constraint in (Constraint(of_count, counted(name)), Constraint(of_values, positive(name)))
    ]


def _array(op: Operation, name: str) -> I64Array | None:
    array = op.properties.get(name)
    return array if array is not None and is_integer_array(array) else None


__all__ = ["WINDOWS", "DimWindow", "ReduceWindowOp", "SelectAndScatterOp", "windows"]


@irdl_op_definition
class ReduceWindowOp(ReducingOp):
    """Combine the elements in a window, for each position of the window."""

    name = "stablehlo.reduce_window"

    window_dimensions = prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    base_dilations = opt_prop_def(I64_ARRAY)
    window_dilations = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()

    def verify_(self) -> None:
        verify_constraints(self, REDUCE_WINDOW_CONSTRAINTS)

    def places(self) -> list[int]:
        """Return the number of window positions along each dimension."""
        sizes = self.window_dimensions.get_values()
        moves = windows(sizes, self.window_strides, self.padding, self.base_dilations, self.window_dilations)
        return [move.places(extent) for move, extent in zip(moves, shape_of(self.inputs[0]), strict=True)]


@irdl_op_definition
class SelectAndScatterOp(IRDLOperation):
    """Combine, for each element of the operand, the source values whose windows select it: the gradient of pooling."""

    name = "stablehlo.select_and_scatter"

    operand = operand_def(numbers("I1"))
    source = operand_def(numbers("I2"))
    init_value = operand_def(numbers("I3"))
    window_dimensions = opt_prop_def(I64_ARRAY)
    window_strides = opt_prop_def(I64_ARRAY)
    padding = opt_prop_def()
    result = result_def(TensorType)
    select = region_def("single_block")
    scatter = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        verify_constraints(self, SELECT_AND_SCATTER_CONSTRAINTS)

    def sizes(self) -> Sequence[int]:
        """Return the extents of the window."""
        return self.window_dimensions.get_values() if self.window_dimensions is not None else ()

    def places(self) -> list[int]:
        """Return the number of window positions along each dimension."""
        moves = windows(self.sizes(), self.window_strides, self.padding)
        return [move.places(extent) for move, extent in zip(moves, shape_of(self.operand), strict=True)]


def _rank(op: ReduceWindowOp | SelectAndScatterOp) -> int:
    return len(shape_of(op.operands[0]))


def _check_results(op: ReduceWindowOp) -> None:
    for result in op.result:
        check_shape("a result", shape_of(result), op.places())


REDUCE_WINDOW_CONSTRAINTS: tuple[Constraint[ReduceWindowOp], ...] = (
    Constraint("C1", check_counts),
    Constraint("C2", check_same_shapes),
    Constraint("C4", lambda op: check_count("window_dimensions", len(op.window_dimensions), _rank(op))),
    Constraint("C5", lambda op: check_positive("window_dimensions", op.window_dimensions.get_values())),
    *moving(
        {"window_strides": ("C6", "C7"), "base_dilations": ("C8", "C9"), "window_dilations": ("C10", "C11")}, _rank
    ),
    Constraint("C12", lambda op: padding_of(op.padding, _rank(op))),
    Constraint("C13", lambda op: check_body(op, op.window_dimensions.get_values())),
    Constraint("C3", check_inits),
    Constraint("C15", _check_results),
    Constraint("C16", check_result_elements),
)


def _check_select(op: SelectAndScatterOp) -> None:
    scalar = TensorType(element_of(op.operand), [])
    check_all("the arguments of select", op.select.block.arg_types, [scalar, scalar])
    check_all("the values that select returns", returned_types(op.select.block), [TensorType(i1, [])])


def _combined_type(op: SelectAndScatterOp) -> AnyTensor:
    types = combined_types(op.scatter.block, 1)
    check_scalars(types)
    return types[0]


def _check_init(op: SelectAndScatterOp) -> None:
    check_shape("the initial value", shape_of(op.init_value), [])
    check_promotable("the initial value", element_of(op.init_value), _combined_type(op).element_type)


SELECT_AND_SCATTER_CONSTRAINTS: tuple[Constraint[SelectAndScatterOp], ...] = (
    Constraint("C9", _check_select),
    Constraint("C1", lambda op: check_element("the source", element_of(op.source), element_of(op.operand))),
    Constraint(
        "C10", lambda op: check_promotable("the source", element_of(op.source), _combined_type(op).element_type)
    ),
    Constraint("C3", _check_init),
    Constraint("C4", lambda op: check_count("window_dimensions", len(op.sizes()), _rank(op))),
    Constraint("C5", lambda op: check_positive("window_dimensions", op.sizes())),
    *moving({"window_strides": ("C6", "C7")}, _rank),
    Constraint("C8", lambda op: padding_of(op.padding, _rank(op))),
    Constraint("C2", lambda op: check_shape("the source", shape_of(op.source), op.places())),
    Constraint("C11", lambda op: check_shape("the result", shape_of(op.result), shape_of(op.operand))),
    Constraint("C12", lambda op: check_element("the result", element_of(op.result), _combined_type(op).element_type)),
)

WINDOWS: list[type[Operation]] = [ReduceWindowOp, SelectAndScatterOp]
