"""Slices and concatenation of tensors, and slices at run-time indices.

With slices at run-time indices, a loop reads and writes the part of a stack that belongs to one iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.counted import counted
from ...support.type_guards import is_tensor
from .attributes import parse_int64
from .checks import check_dimensions, check_element, check_shape, check_sizes, check_types, element_of, shape_of
from .extent_bounds import largest_shape
from .formats import (
    I64_ATTR,
    FunctionTypeOp,
    Properties,
    i64_array,
    parse_all_operands,
    parse_assigned,
    parse_operands_before_field,
    print_field,
)
from .shapes import I64_ARRAY, ViewOp, is_static
from .tensors import numbers


@irdl_op_definition
class SliceOp(ViewOp):
    """Return the elements from a start to a limit, with a stride, along each dimension.

    Example:
        stablehlo.slice %a [0:1, 0:4:2]
    """

    name = "stablehlo.slice"

    operand = operand_def(numbers("I1"))
    start_indices = prop_def(I64_ARRAY)
    limit_indices = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)

    SPELLED: ClassVar[tuple[str, ...]] = ("start_indices", "limit_indices", "strides")

    def __init__(self, operand: SSAValue, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]):
        ranges = zip(starts, limits, strides, strict=True)
        result = TensorType(element_of(operand), [_extent(*bounds) for bounds in ranges])
        properties = _slice_properties(starts, limits, strides)
        super().__init__(operands=[operand], result_types=[result], properties=properties)

    def ranges(self) -> list[tuple[int, int, int]]:
        """Return the start, the limit and the stride of each dimension."""
        parts = (self.start_indices, self.limit_indices, self.strides)
        return list(zip(*(part.get_values() for part in parts), strict=True))

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        if not len(self.start_indices) == len(self.limit_indices) == len(self.strides) == len(shape):
            raise VerifyException(
                f"C2: expected a start, a limit and a stride for each dimension of {self.operand.type}"
            )
        assert is_tensor(self.operand.type), "by the definition of the operation"
        for extent, (start, limit, stride) in zip(largest_shape(self.operand.type), self.ranges(), strict=True):
            if stride < 1:
                raise VerifyException(f"C4: the stride of {start}:{limit}:{stride} must be positive")
            if not 0 <= start <= limit or (extent != DYNAMIC_INDEX and limit > extent):
                raise VerifyException(f"C3: {start}:{limit}:{stride} is not a valid slice of an extent of {extent}")
        check_element("C1: the result", element_of(self.result), element_of(self.operand))
        check_shape("C5: the result", shape_of(self.result), [_extent(*bounds) for bounds in self.ranges()])

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        ranges = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_range(parser))
        return _slice_properties(*(zip(*ranges, strict=True) if ranges else ((), (), ())))

    def print_own(self, printer: Printer) -> None:
        texts = (f"{start}:{limit}" + (f":{stride}" if stride != 1 else "") for start, limit, stride in self.ranges())
        printer.print_string(f" [{', '.join(texts)}]")


def _extent(start: int, limit: int, stride: int) -> int:
    return -((start - limit) // stride)


def _slice_properties(starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> Properties:
    parts = {"start_indices": starts, "limit_indices": limits, "strides": strides}
    return {name: i64_array(values) for name, values in parts.items()}


def _parse_range(parser: Parser) -> tuple[int, int, int]:
    start = parse_int64(parser)
    parser.parse_punctuation(":")
    limit = parse_int64(parser)
    has_stride = parser.parse_optional_punctuation(":") is not None
    return start, limit, parse_int64(parser) if has_stride else 1


@irdl_op_definition
class ConcatenateOp(FunctionTypeOp):
    """Concatenate the operands along a dimension: `stablehlo.concatenate %a, %b, dim = 0`"""

    name = "stablehlo.concatenate"

    inputs = var_operand_def(numbers("I1"))
    dimension = prop_def(I64_ATTR)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("dimension",)

    def __init__(self, inputs: Sequence[SSAValue], dimension: int):
        shape = list(shape_of(inputs[0]))
        shape[dimension] = sum(shape_of(value)[dimension] for value in inputs)
        result = TensorType(element_of(inputs[0]), shape)
        properties = {"dimension": IntegerAttr(dimension, i64)}
        super().__init__(operands=[inputs], result_types=[result], properties=properties)

    def verify_(self) -> None:
        if not self.inputs:
            raise VerifyException("C3: there are no operands, expected at least one")
        along = self.dimension.value.data
        expected = list(shape_of(self.result))
        check_dimensions("C4: the dimension", [along], len(expected))
        for value in self.inputs:
            check_element("C5: an operand", element_of(value), element_of(self.result))
            shape = list(shape_of(value))
            check_dimensions("C4: the dimension", [along], len(shape))
            check_shape("C2: an operand", shape, [*expected[:along], shape[along], *expected[along + 1 :]])
        total = sum(shape_of(value)[along] for value in self.inputs)
        if is_static(self.result, *self.inputs) and total != expected[along]:
            raise VerifyException(
                f"C6: the extents of the operands along dimension {along} add up to {total}, but the result has extent "
                f"{expected[along]}"
            )

    @classmethod
    def parse_operand_names(cls, parser: Parser) -> list[UnresolvedOperand]:
        return parse_operands_before_field(parser)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_keyword("dim")
        parser.parse_punctuation("=")
        return {"dimension": IntegerAttr(parse_int64(parser), i64)}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", dim = {self.dimension.value.data}")


SLICES: list[type[Operation]] = [SliceOp, ConcatenateOp]


@irdl_op_definition
class DynamicSliceOp(FunctionTypeOp):
    """Return a slice of the first operand. The other operands give the start indices of the slice, which are clamped so
    that the slice is in bounds.

    Example:
        stablehlo.dynamic_slice %a, %i, %j, sizes = [1, 4]
    """

    name = "stablehlo.dynamic_slice"

    operand = operand_def(numbers("I1"))
    start_indices = var_operand_def(numbers("I2"))
    slice_sizes = prop_def(I64_ARRAY)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("slice_sizes",)

    def __init__(self, operand: SSAValue, starts: Sequence[SSAValue], sizes: Sequence[int]):
        result = TensorType(element_of(operand), sizes)
        super().__init__(
            operands=[operand, starts], result_types=[result], properties={"slice_sizes": i64_array(sizes)}
        )

    def verify_(self) -> None:
        sizes = self.slice_sizes.get_values()
        check_starts(self.start_indices, shape_of(self.operand), sizes, ("C2", "C2", "C3"))
        check_sizes("C4: a slice", sizes, shape_of(self.operand))
        check_element("C1: the result", element_of(self.result), element_of(self.operand))
        check_shape("C5: the result", shape_of(self.result), sizes)

    @classmethod
    def parse_operand_names(cls, parser: Parser) -> list[UnresolvedOperand]:
        return parse_operands_before_field(parser)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"slice_sizes": parse_assigned(parser, "sizes")}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "sizes", self.slice_sizes)


@irdl_op_definition
class DynamicUpdateSliceOp(FunctionTypeOp):
    """Return the operand, with the slice at the start indices replaced by the update."""

    name = "stablehlo.dynamic_update_slice"

    operand = operand_def(numbers("I1"))
    update = operand_def(numbers("I2"))
    start_indices = var_operand_def(numbers("I3"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, update: SSAValue, starts: Sequence[SSAValue]):
        super().__init__(operands=[operand, update, starts], result_types=[operand.type])

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        check_starts(self.start_indices, shape, shape_of(self.update), ("C4", "C3", "C5"))
        static_extents = [extent if extent != DYNAMIC_INDEX else 0 for extent in shape_of(self.update)]
        check_sizes("C6: an update", static_extents, shape)
        check_element("C2: the update", element_of(self.update), element_of(self.operand))
        check_types("C1: the result", self.result.type, self.operand.type)

    @classmethod
    def parse_operand_names(cls, parser: Parser) -> list[UnresolvedOperand]:
        return parse_all_operands(parser)


def check_starts(
    starts: Sequence[SSAValue], shape: Sequence[int], sizes: Sequence[int], labels: tuple[str, str, str]
) -> None:
    """Check that there is one scalar index for each dimension, and that all indices have the same integer type.

    `labels`: the labels of the constraints on the number of indices, the number of sizes, and the type of an index.
    """
    of_indices, of_sizes, of_type = labels
    for label, count in ((of_sizes, len(sizes)), (of_indices, len(starts))):
        if count != len(shape):
            indices = counted(len(starts), "start index", "start indices")
            words = f"{indices} and {counted(len(sizes), 'slice size')}, expected {len(shape)} of each"
            raise VerifyException(f"{label}: {words}")
    for start in starts:
        check_shape(f"{of_type}: an index", shape_of(start), [])
        check_element(f"{of_type}: an index", element_of(start), element_of(starts[0]))
        if not isinstance(element_of(start), IntegerType):
            raise VerifyException(f"{of_type}: an index has elements of type {element_of(start)}, expected integers")


DYNAMIC: list[type[Operation]] = [DynamicSliceOp, DynamicUpdateSliceOp]
