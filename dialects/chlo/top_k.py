"""`chlo.top_k`: the largest elements of each row, and their indices.

Example:
    %values, %indices = chlo.top_k(%a, k = 2) : type -> (type, type)
"""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, IntegerAttr, TensorType, UnrankedTensorType, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..stablehlo.attributes import parse_int64
from ..stablehlo.checks import check_shape, check_types, element_of, shape_of
from ..stablehlo.formats import parse_attributes, parse_operands, print_attributes
from .broadcasting import ANY_RANK


@irdl_op_definition
class TopKOp(IRDLOperation):
    """Return the `k` largest elements of each row in descending order, and their indices.

    Equal elements are ordered by index.
    """

    name = "chlo.top_k"

    operand = operand_def(ANY_RANK)
    k = prop_def(IntegerAttr)
    is_stable = opt_prop_def(BoolAttr)
    values = result_def(ANY_RANK)
    indices = result_def(ANY_RANK)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        with parser.in_parens():
            operands = parse_operands(parser, 1)
            parser.parse_punctuation(",")
            parser.parse_keyword("k")
            parser.parse_punctuation("=")
            properties: dict[str, Attribute] = {"k": IntegerAttr(parse_int64(parser), i64)}
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("is_stable")
                parser.parse_punctuation("=")
                if not parser.parse_boolean():
                    properties["is_stable"] = BoolAttr.from_bool(False)
        attributes = parse_attributes(parser, cls, ("k", "is_stable"))[1]
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        parser.parse_punctuation("->")
        results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        resolved = parser.resolve_operands(operands, [type_], start)
        return cls.create(operands=resolved, result_types=results, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        with printer.in_parens():
            printer.print_operand(self.operand)
            printer.print_string(f", k = {self.k.value.data}")
            # True is the default.
            if self.is_stable is not None and not self.is_stable.value.data:
                printer.print_string(", is_stable = false")
        print_attributes(printer, self, ("k", "is_stable"))
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(self.result_types, printer.print_attribute)

    def verify_(self) -> None:
        if any(isinstance(value.type, UnrankedTensorType) for value in (*self.operands, *self.results)):
            return
        *rows, columns = shape_of(self.operand) or (0,)
        if self.k.value.data < 0 or (columns != DYNAMIC_INDEX and self.k.value.data > columns):
            k = self.k.value.data
            raise VerifyException(f"k is {k}, but must be from 0 to the last extent of {self.operand.type}")
        shape = [*rows, self.k.value.data]
        check_types("the values", self.values.type, TensorType(element_of(self.operand), shape))
        check_shape("the indices", shape_of(self.indices), shape)


TOP_K: list[type[Operation]] = [TopKOp]
