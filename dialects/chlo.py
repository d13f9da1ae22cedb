"""CHLO for xDSL: operations that JAX emits and StableHLO does not have.

%r = chlo.erf %a : type -> type
%r = chlo.zeta %a, %b : type, type -> type
%values, %indices = chlo.top_k(%a, k = 2) : type -> (type, type)

Names, properties and assembly are those of ChloOps.td. Other operations pass through in the generic form.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import DYNAMIC_INDEX, BoolAttr, IntegerAttr, TensorType, UnrankedTensorType, i1, i64
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .chlo_broadcasting import ANY_RANK, BROADCASTING, BROADCASTING_ATTRIBUTES
from .chlo_ragged_dot import RAGGED_DOT, RAGGED_DOT_ATTRIBUTES
from .chlo_scan import SCAN
from .stablehlo.attributes import parse_int64
from .stablehlo.checks import (
    Takes,
    check_element,
    check_shape,
    check_takes,
    check_types,
    element_of,
    is_any,
    is_float,
    is_float_or_complex,
    is_integer,
    shape_of,
)
from .stablehlo.formats import CustomFormatOp, Types, parse_attributes, parse_operands, print_attributes


class ElementwiseOp(CustomFormatOp):
    """`: types of the operands -> type of the result`"""

    TAKES: ClassVar[Takes] = is_any
    """The element types that the operation is defined for."""
    IS_TEST: ClassVar[bool] = False
    """Whether the result is a boolean for each element."""

    traits = traits_def(Pure())

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> Types:
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        parser.parse_punctuation("->")
        return operands, [parser.parse_type()]

    def print_types(self, printer: Printer) -> None:
        printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.results[0].type)

    def verify_(self) -> None:
        first, result = self.operands[0], self.results[0]
        for other in self.operands[1:]:
            check_types("the right operand", other.type, first.type)
        check_takes(self, type(self).TAKES)
        if not type(self).IS_TEST:
            return check_types("the result", result.type, first.type)
        check_shape("the result", shape_of(result), shape_of(first))
        check_element("the result", element_of(result), i1)


class UnaryOp(ElementwiseOp):
    operand = operand_def(TensorType)
    result = result_def(TensorType)


class BinaryOp(ElementwiseOp):
    ARITY: ClassVar[int] = 2

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)


def _elementwise(base: type[ElementwiseOp], word: str, takes: Takes, is_test: bool = False) -> type[Operation]:
    """Return the class of the operation `chlo.<word>`."""

    @irdl_op_definition
    class Elementwise(base):
        name = f"chlo.{word}"
        TAKES: ClassVar[Takes] = takes
        IS_TEST: ClassVar[bool] = is_test

    Elementwise.__name__ = f"{word.title().replace('_', '')}Op"
    return Elementwise


@irdl_op_definition
class TopKOp(IRDLOperation):
    """The `k` largest elements of each row in descending order, and their indices; of equal elements the first."""

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
            raise VerifyException(f"there are no {self.k.value.data} elements in a row of {columns}")
        shape = [*rows, self.k.value.data]
        check_types("the values", self.values.type, TensorType(element_of(self.operand), shape))
        check_shape("the indices", shape_of(self.indices), shape)


_FLOAT = "digamma erf erf_inv erfc lgamma"
_FLOAT_OR_COMPLEX = "acos acosh asin asinh atan atanh bessel_i1e conj cosh sinh square tan"
OPERATIONS: list[type[Operation]] = [
    *(_elementwise(UnaryOp, word, is_float) for word in _FLOAT.split()),
    *(_elementwise(UnaryOp, word, is_float_or_complex) for word in _FLOAT_OR_COMPLEX.split()),
    *(_elementwise(UnaryOp, word, is_float, is_test=True) for word in ("is_inf", "is_neg_inf", "is_pos_inf")),
    *(_elementwise(BinaryOp, word, is_float) for word in ("next_after", "polygamma", "zeta")),
    _elementwise(BinaryOp, "mulhi", is_integer),
    TopKOp,
    *BROADCASTING,
    *RAGGED_DOT,
    *SCAN,
]
CHLO = Dialect("chlo", OPERATIONS, [*BROADCASTING_ATTRIBUTES, *RAGGED_DOT_ATTRIBUTES])
