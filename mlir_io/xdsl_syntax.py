"""Parsers of custom forms that xDSL 0.73 and 0.74 parse differently from MLIR. The parsers create xDSL's own
operations.

Examples:
    %1 = arith.trunci %0 overflow<nsw> : i64 to i32
    %3 = tensor.reshape %2(%shape) {tag = "a"} : (tensor<8xf32>, tensor<2xindex>) -> tensor<?x?xf32>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.arith import (
    CMPF_COMPARISON_OPERATIONS,
    CMPI_COMPARISON_OPERATIONS,
    CmpfOp,
    CmpiOp,
    FastMathFlagsAttr,
    IntegerOverflowAttr,
    SelectOp,
    TruncIOp,
)
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.ops import BroadcastOp, TransposeOp
from xdsl.dialects.tensor import DimOp, EmptyOp, ReshapeOp
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from .function_syntax import FunctionSyntax
from .workarounds.arith_on_tensors import with_elements

ComparisonT = TypeVar("ComparisonT", CmpiOp, CmpfOp)
OVERFLOW = "overflowFlags"
PREDICATES: dict[type[Operation], Sequence[str]] = {
    CmpiOp: CMPI_COMPARISON_OPERATIONS,
    CmpfOp: CMPF_COMPARISON_OPERATIONS,
}
"""The names of the predicates of each comparison, in the order of their encoding."""


class TruncISyntax(TruncIOp):
    """A parser for `arith.trunci` that stores the property `overflowFlags`, which xDSL lacks, as an attribute."""

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
    """A parser for `tensor.reshape` that accepts attributes after the operands. xDSL expects them before the
    operands."""

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


class EmptySyntax(EmptyOp):
    """A parser for `tensor.empty` with attributes, for which xDSL has no syntax."""

    @classmethod
    def parse(cls, parser: Parser) -> EmptyOp:
        start = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return EmptyOp.create(
            operands=parser.resolve_operands(names, [IndexType()] * len(names), start),
            result_types=[parser.parse_type()],
            attributes=attributes,
        )


class DimSyntax(DimOp):
    """A parser for `tensor.dim` that accepts attributes after the operands. xDSL expects them before the operands."""

    @classmethod
    def parse(cls, parser: Parser) -> DimOp:
        start = parser.pos
        attributes = parser.parse_optional_attr_dict()
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        index = parser.parse_unresolved_operand()
        attributes |= parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type(), IndexType()]
        return DimOp.create(
            operands=parser.resolve_operands([source, index], types, start),
            result_types=[IndexType()],
            attributes=attributes,
        )


class TransposeSyntax(TransposeOp):
    """A parser for `linalg.transpose` with attributes, for which xDSL has no syntax."""

    @classmethod
    def parse(cls, parser: Parser) -> TransposeOp:
        op: TransposeOp = TransposeOp.parse(parser)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op


class BroadcastSyntax(BroadcastOp):
    """A parser for `linalg.broadcast` with attributes, for which xDSL has no syntax."""

    @classmethod
    def parse(cls, parser: Parser) -> BroadcastOp:
        op: BroadcastOp = BroadcastOp.parse(parser)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op


def _parse_comparison(parser: Parser, comparison: type[ComparisonT]) -> ComparisonT:
    """Parse a comparison of scalars, tensors or vectors; xDSL accepts only scalars."""
    start = parser.pos
    predicate = parser.parse_identifier()
    if predicate not in PREDICATES[comparison]:
        expected = ", ".join(PREDICATES[comparison])
        parser.raise_error(
            f"unknown predicate '{predicate}' of {comparison.name}, expected one of {expected}", start, parser.pos
        )
    parser.parse_punctuation(",")
    lhs = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    rhs = parser.parse_unresolved_operand()
    properties: dict[str, Attribute] = {"predicate": IntegerAttr(PREDICATES[comparison].index(predicate), i64)}
    if comparison is CmpfOp:
        flags = FastMathFlagsAttr("none")
        if parser.parse_optional_keyword("fastmath") is not None:
            flags = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        properties["fastmath"] = flags
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    return comparison.create(
        operands=parser.resolve_operands([lhs, rhs], [type_, type_], start),
        result_types=[with_elements(type_, i1)],
        properties=properties,
        attributes=attributes,
    )


class CmpiSyntax(CmpiOp):
    """A parser for `arith.cmpi` that also accepts tensors and vectors."""

    @classmethod
    def parse(cls, parser: Parser) -> CmpiOp:
        return _parse_comparison(parser, CmpiOp)


class CmpfSyntax(CmpfOp):
    """A parser for `arith.cmpf` that also accepts tensors and vectors."""

    @classmethod
    def parse(cls, parser: Parser) -> CmpfOp:
        return _parse_comparison(parser, CmpfOp)


class SelectSyntax(SelectOp):
    """A parser for `arith.select`. The type of the condition comes first; it is omitted if the condition is a
    scalar."""

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        start = parser.pos
        names = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        *condition, type_ = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        if len(names) != 3 or len(condition) > 1:
            parser.raise_error("expected a condition and two values of the same type", start, parser.pos)
        types = [condition[0] if condition else i1, type_, type_]
        return SelectOp.create(
            operands=parser.resolve_operands(names, types, start), result_types=[type_], attributes=attributes
        )


SYNTAXES: dict[type[Operation], type[Operation]] = {
    FuncOp: FunctionSyntax,
    TruncIOp: TruncISyntax,
    ReshapeOp: ReshapeSyntax,
    EmptyOp: EmptySyntax,
    DimOp: DimSyntax,
    TransposeOp: TransposeSyntax,
    BroadcastOp: BroadcastSyntax,
    CmpiOp: CmpiSyntax,
    CmpfOp: CmpfSyntax,
    SelectOp: SelectSyntax,
}
"""The class that parses the custom form of each of these operations."""
