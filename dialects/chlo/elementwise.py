"""CHLO's elementwise operations.

Examples:
    %r = chlo.erf %a : type -> type
    %r = chlo.zeta %a, %b : type, type -> type
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..stablehlo.checks import (
    ElementPredicate,
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
from ..stablehlo.formats import CustomFormatOp, Types


class ElementwiseOp(CustomFormatOp):
    """Base class of elementwise operations, printed as `chlo.name %a, %b : operand types -> result type`."""

    TAKES: ClassVar[ElementPredicate] = is_any
    """A predicate that accepts the element types for which the operation is defined."""
    IS_TEST: ClassVar[bool] = False
    """Whether the elements of the result are booleans."""

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


def _elementwise(
    base: type[ElementwiseOp], word: str, takes: ElementPredicate, is_test: bool = False
) -> type[Operation]:
    """Return the class of the operation `chlo.<word>`."""

    @irdl_op_definition
    class Elementwise(base):
        name = f"chlo.{word}"
        TAKES: ClassVar[ElementPredicate] = takes
        IS_TEST: ClassVar[bool] = is_test

    Elementwise.__name__ = f"{word.title().replace('_', '')}Op"
    return Elementwise


_FLOAT = "digamma erf erf_inv erfc lgamma"
_FLOAT_OR_COMPLEX = "acos acosh asin asinh atan atanh bessel_i1e conj cosh sinh square tan"
ELEMENTWISE: list[type[Operation]] = [
    *(_elementwise(UnaryOp, word, is_float) for word in _FLOAT.split()),
    *(_elementwise(UnaryOp, word, is_float_or_complex) for word in _FLOAT_OR_COMPLEX.split()),
    *(_elementwise(UnaryOp, word, is_float, is_test=True) for word in ("is_inf", "is_neg_inf", "is_pos_inf")),
    *(_elementwise(BinaryOp, word, is_float) for word in ("next_after", "polygamma", "zeta")),
    _elementwise(BinaryOp, "mulhi", is_integer),
]
