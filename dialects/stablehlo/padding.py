"""`stablehlo.pad` (padding of tensors) and `stablehlo.reverse` (reversal of dimensions)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_tensor
from .checks import (
    check_distinct,
    check_element,
    check_shape,
    check_types,
    check_within,
    element_of,
    shape_of,
)
from .extent_bounds import largest_shape
from .formats import FunctionTypeOp, Properties, SameTypeOp, i64_array, parse_field, print_field
from .shapes import I64_ARRAY
from .tensors import numbers

_FIELDS = {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"}


@irdl_op_definition
class PadOp(FunctionTypeOp):
    """Add padding around the operand and between its elements. A negative amount removes elements at an edge.

    Example:
        stablehlo.pad %a, %z, low = [1], high = [0], interior = [2]
    """

    name = "stablehlo.pad"

    operand = operand_def(numbers("I1"))
    padding_value = operand_def(numbers("I2"))
    edge_padding_low = prop_def(I64_ARRAY)
    edge_padding_high = prop_def(I64_ARRAY)
    interior_padding = prop_def(I64_ARRAY)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2
    SPELLED: ClassVar[tuple[str, ...]] = tuple(_FIELDS.values())

    def __init__(
        self, operand: SSAValue, value: SSAValue, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
    ):
        shape = padded_shape(shape_of(operand), low, high, interior)
        result = TensorType(element_of(operand), shape)
        properties = {
            name: i64_array(amounts) for name, amounts in zip(_FIELDS.values(), (low, high, interior), strict=True)
        }
        super().__init__(operands=[operand, value], result_types=[result], properties=properties)

    def verify_(self) -> None:
        shape = shape_of(self.operand)
        amounts = [
            amount.get_values() for amount in (self.edge_padding_low, self.edge_padding_high, self.interior_padding)
        ]
        if any(len(amount) != len(shape) for amount in amounts):
            words = f"must have one entry for each dimension of {self.operand.type}"
            raise VerifyException(f"C2: low, high and interior {words}")
        if any(between < 0 for between in amounts[2]):
            raise VerifyException(
                f"C3: interior {list(amounts[2])} must not be negative, because only edges can be cropped"
            )
        check_shape("I2: the padding value", shape_of(self.padding_value), [])
        check_element("C1: the padding value", element_of(self.padding_value), element_of(self.operand))
        check_element("C1: the result", element_of(self.result), element_of(self.operand))
        check_shape("C4: the result", shape_of(self.result), padded_shape(shape, *amounts))
        assert is_tensor(self.operand.type), "by the definition of the operation"
        largest = padded_shape(largest_shape(self.operand.type), *amounts)
        if any(extent < 0 for extent in largest if extent != DYNAMIC_INDEX):
            raise VerifyException(
                f"C4: with the bounds of {self.operand.type}, the padded shape has a negative extent: {largest}"
            )

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {name: parse_field(parser, keyword) for keyword, name in _FIELDS.items()}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "low", self.edge_padding_low)
        print_field(printer, "high", self.edge_padding_high)
        print_field(printer, "interior", self.interior_padding)


def padded_shape(shape: Sequence[int], low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> list[int]:
    return [
        DYNAMIC_INDEX if extent == DYNAMIC_INDEX else below + extent + max(extent - 1, 0) * between + above
        for extent, below, above, between in zip(shape, low, high, interior, strict=True)
    ]


@irdl_op_definition
class ReverseOp(SameTypeOp):
    """Reverse the operand along the given dimensions: `stablehlo.reverse %a, dims = [0]`"""

    name = "stablehlo.reverse"

    operand = operand_def(numbers("I1"))
    dimensions = prop_def(I64_ARRAY)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("dimensions",)

    def __init__(self, operand: SSAValue, dimensions: Sequence[int]):
        properties = {"dimensions": i64_array(dimensions)}
        super().__init__(operands=[operand], result_types=[operand.type], properties=properties)

    def verify_(self) -> None:
        check_within("C3: the dimensions", self.dimensions.get_values(), len(shape_of(self.operand)))
        check_distinct("C2: the dimensions", self.dimensions.get_values())
        check_types("C1: the result", self.result.type, self.operand.type)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"dimensions": parse_field(parser, "dims")}

    def print_own(self, printer: Printer) -> None:
        print_field(printer, "dims", self.dimensions)


PADDING: list[type[Operation]] = [PadOp, ReverseOp]
