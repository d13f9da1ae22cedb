"""Operations that move or view elements without computing with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import check_dimensions, check_element, check_shape, element_of, shape_of
from .formats import FunctionTypeOp, Properties, i64_array, parse_keyword_dimensions

I64_ARRAY = DenseArrayBase.constr(i64)


class ViewOp(FunctionTypeOp):
    """One tensor in, one tensor out."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())


def is_static(*values: SSAValue) -> bool:
    """Whether all extents of these tensors are known."""
    return all(DYNAMIC_INDEX not in shape_of(value) for value in values)


@irdl_op_definition
class ReshapeOp(ViewOp):
    """The same elements in row-major order under another shape."""

    name = "stablehlo.reshape"

    def __init__(self, operand: SSAValue, result_type: Attribute):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_(self) -> None:
        check_element("the result", element_of(self.result), element_of(self.operand))
        before, after = math.prod(shape_of(self.operand)), math.prod(shape_of(self.result))
        if is_static(self.operand, self.result) and before != after:
            raise VerifyException(f"the result has {after} elements, the operand {before}")


@irdl_op_definition
class BitcastConvertOp(ViewOp):
    """The same bits as another element type; a trailing dimension takes up a difference in width."""

    name = "stablehlo.bitcast_convert"

    def __init__(self, operand: SSAValue, result_type: Attribute):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_(self) -> None:
        before, after = shape_of(self.operand), shape_of(self.result)
        shared = min(len(before), len(after))
        if abs(len(before) - len(after)) > 1:
            raise VerifyException("a bitcast adds or drops one dimension at most")
        check_shape("the result", after[:shared], before[:shared])


@irdl_op_definition
class BroadcastInDimOp(ViewOp):
    """Dimension i of the operand becomes dimension `broadcast_dimensions[i]` of the result; the others repeat it."""

    name = "stablehlo.broadcast_in_dim"

    broadcast_dimensions = prop_def(I64_ARRAY)

    SPELLED: ClassVar[tuple[str, ...]] = ("broadcast_dimensions",)

    def __init__(self, operand: SSAValue, dimensions: Sequence[int], result_type: Attribute):
        properties = {"broadcast_dimensions": i64_array(dimensions)}
        super().__init__(operands=[operand], result_types=[result_type], properties=properties)

    def verify_(self) -> None:
        dimensions = self.broadcast_dimensions.get_values()
        before, after = shape_of(self.operand), shape_of(self.result)
        check_element("the result", element_of(self.result), element_of(self.operand))
        check_dimensions("the dimensions", dimensions, len(after))
        if len(dimensions) != len(before):
            raise VerifyException(f"{len(dimensions)} dimensions are given for an operand of rank {len(before)}")
        for extent, dimension in zip(before, dimensions, strict=True):
            if extent not in (1, DYNAMIC_INDEX, after[dimension]):
                raise VerifyException(f"an extent of {extent} does not broadcast to one of {after[dimension]}")

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"broadcast_dimensions": parse_keyword_dimensions(parser, "dims")}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", dims = {list(self.broadcast_dimensions.get_values())}")


@irdl_op_definition
class TransposeOp(ViewOp):
    """Dimension i of the result is dimension `permutation[i]` of the operand."""

    name = "stablehlo.transpose"

    permutation = prop_def(I64_ARRAY)

    SPELLED: ClassVar[tuple[str, ...]] = ("permutation",)

    def __init__(self, operand: SSAValue, permutation: Sequence[int]):
        shape = shape_of(operand)
        result = TensorType(element_of(operand), [shape[dimension] for dimension in permutation])
        properties = {"permutation": i64_array(permutation)}
        super().__init__(operands=[operand], result_types=[result], properties=properties)

    def verify_(self) -> None:
        permutation = self.permutation.get_values()
        shape = shape_of(self.operand)
        check_element("the result", element_of(self.result), element_of(self.operand))
        if sorted(permutation) != list(range(len(shape))):
            raise VerifyException(f"{list(permutation)} is not a permutation of the dimensions of {self.operand.type}")
        check_shape("the result", shape_of(self.result), [shape[dimension] for dimension in permutation])

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"permutation": parse_keyword_dimensions(parser, "dims")}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", dims = {list(self.permutation.get_values())}")


@irdl_op_definition
class SliceOp(ViewOp):
    """`stablehlo.slice %a [0:1, 0:4:2]`: along each dimension from start to limit, every so many."""

    name = "stablehlo.slice"

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
        """Start, limit and stride of each dimension."""
        parts = (self.start_indices, self.limit_indices, self.strides)
        return list(zip(*(part.get_values() for part in parts), strict=True))

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        if not len(self.start_indices) == len(self.limit_indices) == len(self.strides) == len(shape):
            raise VerifyException(f"start, limit and stride are needed for each dimension of {self.operand.type}")
        for extent, (start, limit, stride) in zip(shape, self.ranges(), strict=True):
            if not 0 <= start <= limit or stride < 1 or (extent != DYNAMIC_INDEX and limit > extent):
                raise VerifyException(f"{start}:{limit}:{stride} is not a range within an extent of {extent}")
        check_element("the result", element_of(self.result), element_of(self.operand))
        check_shape("the result", shape_of(self.result), [_extent(*bounds) for bounds in self.ranges()])

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
    start = parser.parse_integer()
    parser.parse_punctuation(":")
    limit = parser.parse_integer()
    has_stride = parser.parse_optional_punctuation(":") is not None
    return start, limit, parser.parse_integer() if has_stride else 1


@irdl_op_definition
class ConcatenateOp(FunctionTypeOp):
    """`stablehlo.concatenate %a, %b, dim = 0`: one after the other along a dimension."""

    name = "stablehlo.concatenate"

    inputs = var_operand_def(TensorType)
    dimension = prop_def(IntegerAttr[IntegerType])
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
            raise VerifyException("there is nothing to concatenate")
        along = self.dimension.value.data
        expected = list(shape_of(self.result))
        check_dimensions("the dimension", [along], len(expected))
        for value in self.inputs:
            check_element("an operand", element_of(value), element_of(self.result))
            shape = list(shape_of(value))
            check_shape("an operand", shape, [*expected[:along], *shape[along : along + 1], *expected[along + 1 :]])
        total = sum(shape_of(value)[along] for value in self.inputs)
        if is_static(self.result, *self.inputs) and total != expected[along]:
            raise VerifyException(f"the operands add up to {total} along dimension {along}, not {expected[along]}")

    @classmethod
    def parse(cls, parser: Parser) -> ConcatenateOp:
        start = parser.pos
        operands: list[UnresolvedOperand] = []
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            parser.parse_punctuation(",")
        return cls.parse_rest(parser, operands, start)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_keyword("dim")
        parser.parse_punctuation("=")
        return {"dimension": IntegerAttr(parser.parse_integer(), i64)}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", dim = {self.dimension.value.data}")


SHAPES: list[type[Operation]] = [
    ReshapeOp,
    BitcastConvertOp,
    BroadcastInDimOp,
    TransposeOp,
    SliceOp,
    ConcatenateOp,
]
