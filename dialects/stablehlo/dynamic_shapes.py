"""Operations whose result shape is computed at run time. Shape operands are one-dimensional tensors of integers.

    %0 = stablehlo.dynamic_reshape %a, %shape : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    %1 = stablehlo.dynamic_broadcast_in_dim %a, %shape, dims = [1] : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    %2 = stablehlo.get_dimension_size %1, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>

A constraint on the values of an operand is checked if the operand is a constant. `set_dimension_size` and
`real_dynamic_slice` are not in the specification, so their constraints have no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, IntegerType, TensorType, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..constants.dense import DenseAttr, to_numpy
from .attributes import parse_int64
from .checks import (
    Constraint,
    check_count,
    check_distinct,
    check_element,
    check_shape,
    check_within,
    element_of,
    is_number,
    is_numeric,
    shape_of,
    verify_constraints,
)
from .creation import ConstantOp
from .formats import I64_ATTR, FunctionTypeOp, Properties, parse_field, print_field
from .padding import padded_shape
from .quantized_types import check_broadcast
from .shapes import I64_ARRAY, is_static
from .tensors import NUMBERS, numbers, tensors


def check_dimension_tensor(subject: str, value: SSAValue, count: int) -> None:
    """Check that a value is a one-dimensional tensor of `count` integers."""
    shape = shape_of(value)
    if len(shape) != 1 or not isinstance(element_of(value), IntegerType | IndexType):
        raise VerifyException(f"{subject} has type {value.type}, expected a tensor of integers with one dimension")
    if shape[0] != DYNAMIC_INDEX:
        check_count(f"elements of {subject}", shape[0], count)


def check_static_length(subject: str, value: SSAValue) -> None:
    """Check that the number of elements of a tensor is static."""
    if DYNAMIC_INDEX in shape_of(value):
        raise VerifyException(f"{subject} has type {value.type}, expected a static number of elements")


def constant_integers(value: SSAValue) -> list[int] | None:
    """Return the elements of a constant; None if the value is not a constant."""
    owner = value.owner
    if not isinstance(owner, Operation) or not isinstance(owner, ConstantOp):
        return None
    if not isinstance(owner.value, DenseAttr):
        return None
    return [int(number) for number in to_numpy(owner.value).reshape(-1)]


def constants_of(values: Sequence[SSAValue]) -> list[list[int]] | None:
    """Return the elements of each constant; None if one of the values is not a constant."""
    constants = [constant_integers(value) for value in values]
    return [numbers for numbers in constants if numbers is not None] if None not in constants else None


class DimensionOp(FunctionTypeOp):
    """Base class of operations with the format `name %a, dim = 0 : (…) -> …`, whose first property is the dimension."""

    SPELLED: ClassVar[tuple[str, ...]] = ("dimension",)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("dim")
        parser.parse_punctuation("=")
        return {cls.SPELLED[0]: IntegerAttr(parse_int64(parser), i64)}

    def print_own(self, printer: Printer) -> None:
        dimension = self.properties[self.SPELLED[0]]
        assert isinstance(dimension, IntegerAttr), "the definition of the operation requires an integer"
        printer.print_string(f", dim = {dimension.value.data}")


@irdl_op_definition
class GetDimensionSizeOp(DimensionOp):
    """Return the extent of a dimension."""

    name = "stablehlo.get_dimension_size"

    operand = operand_def(tensors("I1"))
    dimension = prop_def(I64_ATTR)
    result = result_def(TensorType(i32, []))

    traits = traits_def(Pure())

    def verify_(self) -> None:
        verify_constraints(self, DIMENSION_SIZE_CONSTRAINTS)


@irdl_op_definition
class SetDimensionSizeOp(DimensionOp):
    """Return the first `size` slices of the operand along a dimension."""

    name = "stablehlo.set_dimension_size"

    operand = operand_def(NUMBERS)
    size = operand_def(NUMBERS)
    dimension = prop_def(I64_ATTR)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2

    def verify_(self) -> None:
        dimension = self.dimension.value.data
        operand = shape_of(self.operand)
        result = shape_of(self.result)
        check_within("dimension", [dimension], len(operand))
        check_shape("the size", shape_of(self.size), [])
        check_element("the size", element_of(self.size), i32)
        check_element("the result", element_of(self.result), element_of(self.operand))
        check_count("dimensions of the result", len(result), len(operand))
        others = [[*shape[:dimension], *shape[dimension + 1 :]] for shape in (result, operand)]
        check_shape("the result without the dimension", *others)


@irdl_op_definition
class DynamicIotaOp(DimensionOp):
    """Return a tensor with the shape `output_shape`, in which the value of each element is its index along a
    dimension."""

    name = "stablehlo.dynamic_iota"

    output_shape = operand_def(numbers("I1"))
    iota_dimension = prop_def(I64_ATTR)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("iota_dimension",)

    def verify_(self) -> None:
        verify_constraints(self, IOTA_CONSTRAINTS)


@irdl_op_definition
class DynamicReshapeOp(FunctionTypeOp):
    """Return the elements of the operand, in row-major order, in the shape `output_shape`."""

    name = "stablehlo.dynamic_reshape"

    operand = operand_def(tensors("I1"))
    output_shape = operand_def(numbers("I2"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2

    def verify_(self) -> None:
        verify_constraints(self, RESHAPE_CONSTRAINTS)


@irdl_op_definition
class DynamicBroadcastInDimOp(FunctionTypeOp):
    """Broadcast as `broadcast_in_dim` does, to the shape `output_dimensions`."""

    name = "stablehlo.dynamic_broadcast_in_dim"

    operand = operand_def(tensors("I1"))
    output_dimensions = operand_def(numbers("I2"))
    broadcast_dimensions = prop_def(I64_ARRAY)
    known_expanding_dimensions = opt_prop_def(I64_ARRAY)
    known_nonexpanding_dimensions = opt_prop_def(I64_ARRAY)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2
    SPELLED: ClassVar[tuple[str, ...]] = ("broadcast_dimensions",)

    def verify_(self) -> None:
        verify_constraints(self, BROADCAST_CONSTRAINTS)
        check_broadcast("C6", self.operand, self.result, self.broadcast_dimensions.get_values())

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"broadcast_dimensions": parse_field(parser, "dims")}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "dims", self.broadcast_dimensions)


@irdl_op_definition
class DynamicPadOp(FunctionTypeOp):
    """Pad as `pad` does, by amounts that are operands."""

    name = "stablehlo.dynamic_pad"

    operand = operand_def(numbers("I1"))
    padding_value = operand_def(numbers("I2"))
    edge_padding_low = operand_def(numbers("I3"))
    edge_padding_high = operand_def(numbers("I4"))
    interior_padding = operand_def(numbers("I5"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 5

    def verify_(self) -> None:
        verify_constraints(self, PAD_CONSTRAINTS)


@irdl_op_definition
class RealDynamicSliceOp(FunctionTypeOp):
    """Slice as `slice` does, with starts, limits and strides that are operands."""

    name = "stablehlo.real_dynamic_slice"

    operand = operand_def(NUMBERS)
    start_indices = operand_def(NUMBERS)
    limit_indices = operand_def(NUMBERS)
    strides = operand_def(NUMBERS)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 4

    def verify_(self) -> None:
        rank = len(shape_of(self.operand))
        numbers = (self.start_indices, self.limit_indices, self.strides)
        check_count("dimensions of the result", len(shape_of(self.result)), rank)
        check_element("the result", element_of(self.result), element_of(self.operand))
        for subject, value in zip(("start_indices", "limit_indices", "strides"), numbers, strict=True):
            check_dimension_tensor(subject, value, rank)
        if (constants := constants_of(numbers)) is not None:
            check_shape("the result", shape_of(self.result), _slice_shape(shape_of(self.operand), *constants))


def _slice_shape(
    shape: Sequence[int], starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]
) -> Sequence[int]:
    """Return the shape of a slice. Raises `VerifyException` for a range that is invalid or outside the shape."""
    extents = list[int]()
    for extent, start, limit, stride in zip(shape, starts, limits, strides, strict=True):
        if not 0 <= start <= limit or stride < 1 or (extent != DYNAMIC_INDEX and limit > extent):
            raise VerifyException(f"{start}:{limit}:{stride} is not a valid slice of an extent of {extent}")
        extents.append(-((start - limit) // stride))
    return extents


def _check_same_element(op: Operation) -> None:
    """Check that the operand and the result have the same element type. Quantized types may differ, for example in the
    quantization dimension."""
    operand, result = element_of(op.operands[0]), element_of(op.results[0])
    if is_numeric(operand) or is_numeric(result):
        check_element("the result", result, operand)


def _requires_one_per_dimension(name: str) -> Callable[[Operation], None]:
    """Return a check that the operand `name` has one element for each dimension of the result."""
    return lambda op: check_dimension_tensor(name, getattr(op, name), len(shape_of(op.results[0])))


def _requires_static_length(name: str) -> Callable[[Operation], None]:
    return lambda op: check_static_length(name, getattr(op, name))


def _check_stated_shape(result: SSAValue, shape: SSAValue) -> None:
    """Check the shape of the result against the shape operand, if this operand is a constant."""
    if (extents := constant_integers(shape)) is not None:
        if any(extent < 0 for extent in extents):
            raise VerifyException(f"the shape {extents} has a negative extent")
        check_shape("the result", shape_of(result), extents)


DIMENSION_SIZE_CONSTRAINTS: tuple[Constraint[GetDimensionSizeOp], ...] = (
    Constraint("C1", lambda op: check_within("dimension", [op.dimension.value.data], len(shape_of(op.operand)))),
)


def _check_countable(op: DynamicIotaOp) -> None:
    if not is_number(element_of(op.result)):
        raise VerifyException(f"the result has elements of type {element_of(op.result)}, expected a numeric type")


IOTA_CONSTRAINTS: tuple[Constraint[DynamicIotaOp], ...] = (
    Constraint("I1", _requires_static_length("output_shape")),
    Constraint("C1", lambda op: check_within("dim", [op.iota_dimension.value.data], shape_of(op.output_shape)[0])),
    Constraint("C2", _requires_one_per_dimension("output_shape")),
    Constraint("C2", lambda op: _check_stated_shape(op.result, op.output_shape)),
    Constraint("C2", _check_countable),
)


def _check_size(op: DynamicReshapeOp) -> None:
    before, after = prod(shape_of(op.operand)), prod(shape_of(op.result))
    if is_static(op.operand, op.result) and before != after:
        raise VerifyException(f"the result has {after} elements, but the operand has {before} elements")
    stated = constant_integers(op.output_shape)
    if stated is not None and is_static(op.operand) and prod(stated) != before:
        raise VerifyException(f"the shape {stated} has {prod(stated)} elements, but the operand has {before} elements")


RESHAPE_CONSTRAINTS: tuple[Constraint[DynamicReshapeOp], ...] = (
    Constraint("I2", _requires_static_length("output_shape")),
    Constraint("C1", _check_same_element),
    Constraint("C4", _requires_one_per_dimension("output_shape")),
    Constraint("C2", _check_size),
    Constraint("C4", lambda op: _check_stated_shape(op.result, op.output_shape)),
)


def _listed_dimensions(op: DynamicBroadcastInDimOp, *names: str) -> list[int]:
    """Return the dimensions of the operand that the properties with these names list."""
    arrays = (op.properties.get(name) for name in names)
    return [int(number) for array in arrays if array is not None for number in array.get_values()]  # pyright: ignore


EXPANDING, NOT_EXPANDING = "known_expanding_dimensions", "known_nonexpanding_dimensions"


def _requires_known_within(name: str) -> Callable[[DynamicBroadcastInDimOp], None]:
    return lambda op: check_within(name, _listed_dimensions(op, name), len(shape_of(op.operand)))


def _check_extents(op: DynamicBroadcastInDimOp) -> None:
    after = shape_of(op.result)
    for extent, dimension in zip(shape_of(op.operand), op.broadcast_dimensions.get_values(), strict=True):
        if extent not in (1, DYNAMIC_INDEX) and after[dimension] not in (extent, DYNAMIC_INDEX):
            raise VerifyException(f"an extent of {extent} cannot be broadcast to an extent of {after[dimension]}")


def _check_stated_extents(op: DynamicBroadcastInDimOp) -> None:
    """Check the extents of the operand against `output_dimensions`, if this operand is a constant."""
    stated = constant_integers(op.output_dimensions)
    for extent, dimension in zip(shape_of(op.operand), op.broadcast_dimensions.get_values(), strict=True):
        if stated is not None and dimension < len(stated) and extent not in (1, DYNAMIC_INDEX, stated[dimension]):
            raise VerifyException(f"an extent of {extent} cannot be broadcast to an extent of {stated[dimension]}")


BROADCAST_CONSTRAINTS: tuple[Constraint[DynamicBroadcastInDimOp], ...] = (
    Constraint("I2", _requires_static_length("output_dimensions")),
    Constraint("C1", _check_same_element),
    Constraint(
        "C2",
        lambda op: check_count("broadcast_dimensions", len(op.broadcast_dimensions), len(shape_of(op.operand))),
    ),
    Constraint(
        "C3",
        lambda op: check_within("broadcast_dimensions", op.broadcast_dimensions.get_values(), len(shape_of(op.result))),
    ),
    Constraint("C4", lambda op: check_distinct("broadcast_dimensions", op.broadcast_dimensions.get_values())),
    Constraint("C5", _check_extents),
    Constraint("C5", _check_stated_extents),
    Constraint("C7", _requires_one_per_dimension("output_dimensions")),
    Constraint("C7", lambda op: _check_stated_shape(op.result, op.output_dimensions)),
    Constraint("C8", lambda op: check_distinct("known dimensions", _listed_dimensions(op, EXPANDING, NOT_EXPANDING))),
    Constraint("C9", _requires_known_within(EXPANDING)),
    Constraint("C10", _requires_known_within(NOT_EXPANDING)),
)

AMOUNTS = ("edge_padding_low", "edge_padding_high", "interior_padding")


def _amounts(op: DynamicPadOp) -> tuple[SSAValue, ...]:
    return op.edge_padding_low, op.edge_padding_high, op.interior_padding


def _check_pad_elements(op: DynamicPadOp) -> None:
    check_element("the padding value", element_of(op.padding_value), element_of(op.operand))
    check_element("the result", element_of(op.result), element_of(op.operand))


def _check_amounts(op: DynamicPadOp) -> None:
    for name, value in zip(AMOUNTS, _amounts(op), strict=True):
        check_dimension_tensor(name, value, len(shape_of(op.operand)))


def _check_interior(op: DynamicPadOp) -> None:
    if any(amount < 0 for amount in constant_integers(op.interior_padding) or ()):
        raise VerifyException("interior_padding must not be negative, because only edges can be cropped")


def _check_padded(op: DynamicPadOp) -> None:
    check_count("dimensions of the result", len(shape_of(op.result)), len(shape_of(op.operand)))
    if (constants := constants_of(_amounts(op))) is not None:
        check_shape("the result", shape_of(op.result), padded_shape(shape_of(op.operand), *constants))


PAD_CONSTRAINTS: tuple[Constraint[DynamicPadOp], ...] = (
    Constraint("I2", lambda op: check_shape("the padding value", shape_of(op.padding_value), [])),
    Constraint("C1", _check_pad_elements),
    Constraint("C2", _check_amounts),
    Constraint("C3", _check_interior),
    Constraint("C4", _check_padded),
)

DYNAMIC_SHAPES: list[type[Operation]] = [
    GetDimensionSizeOp,
    SetDimensionSizeOp,
    DynamicIotaOp,
    DynamicReshapeOp,
    DynamicBroadcastInDimOp,
    DynamicPadOp,
    RealDynamicSliceOp,
]
