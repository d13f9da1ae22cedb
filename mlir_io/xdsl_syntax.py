"""Parsers of custom forms that xDSL 0.73 and 0.74 parse differently from MLIR; they create xDSL's operations.

%1 = arith.trunci %0 overflow<nsw> : i64 to i32
%3 = tensor.reshape %2(%shape) {tag = "a"} : (tensor<8xf32>, tensor<2xindex>) -> tensor<?x?xf32>
"""

from __future__ import annotations

from xdsl.dialects.arith import IntegerOverflowAttr, TruncIOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ReshapeOp
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from .function_syntax import FunctionSyntax

OVERFLOW = "overflowFlags"


class TruncISyntax(TruncIOp):
    """Parser of `arith.trunci`, whose property `overflowFlags` xDSL lacks: it is stored as an attribute."""

    @classmethod
    def parse(cls, parser: Parser) -> TruncIOp:
        operand = parser.parse_unresolved_operand()
        flags = dict[str, Attribute]()
        if parser.parse_optional_keyword("overflow") is not None:
            flags[OVERFLOW] = IntegerOverflowAttr(IntegerOverflowAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_keyword("to")
        return TruncIOp.create(
            operands=[parser.resolve_operand(operand, source)],
            result_types=[parser.parse_type()],
            attributes=flags | attributes,
        )


class ReshapeSyntax(ReshapeOp):
    """Parser of `tensor.reshape`, whose attributes xDSL expects before the operands."""

    @classmethod
    def parse(cls, parser: Parser) -> ReshapeOp:
        start = parser.pos
        source = parser.parse_unresolved_operand()
        with parser.in_parens():
            shape = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_function_type()
        return ReshapeOp.create(
            operands=parser.resolve_operands([source, shape], types.inputs.data, start),
            result_types=types.outputs.data,
            attributes=attributes,
        )


SYNTAXES: dict[type[Operation], type[Operation]] = {
    FuncOp: FunctionSyntax,
    TruncIOp: TruncISyntax,
    ReshapeOp: ReshapeSyntax,
}
"""The class that parses the custom form of each of these operations."""
