"""Elementwise operations that change the representation of numbers, or split them into parts."""

from __future__ import annotations

import re
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_complex_type, is_tensor
from .checks import (
    ElementPredicate,
    check_element,
    check_shape,
    check_takes,
    check_types,
    element_of,
    is_float,
    is_float_or_complex,
    is_signed,
    shape_of,
)
from .formats import I32_ATTR, FunctionTypeOp, Properties, SameTypeOp, Types, print_function_type
from .tensors import numbers


class ShapeKeepingOp(SameTypeOp):
    """Base class of operations whose result has the shape of the operand but may have a different element type."""

    operand = operand_def(numbers("I1"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, result_type: Attribute):
        super().__init__(operands=[operand], result_types=[result_type])

    def verify_(self) -> None:
        check_shape("C1: the result", shape_of(self.result), shape_of(self.operand))


class RealPartOp(ShapeKeepingOp):
    """Base class of operations that compute a real number from each number; real operands keep their type."""

    TAKES: ClassVar[ElementPredicate]

    def verify_(self) -> None:
        super().verify_()
        check_takes(self, type(self).TAKES)
        element = element_of(self.operand)
        expected = element.element_type if is_complex_type(element) else element
        check_element("C2: the result", element_of(self.result), expected)


@irdl_op_definition
class AbsOp(RealPartOp):
    """Return the absolute value of each number. The absolute value of a complex number is real."""

    name = "stablehlo.abs"
    TAKES = is_signed


@irdl_op_definition
class ConvertOp(ShapeKeepingOp):
    """Convert each number to the element type of the result."""

    name = "stablehlo.convert"


@irdl_op_definition
class ImagOp(RealPartOp):
    name = "stablehlo.imag"
    TAKES = is_float_or_complex


@irdl_op_definition
class RealOp(RealPartOp):
    name = "stablehlo.real"
    TAKES = is_float_or_complex


@irdl_op_definition
class ReducePrecisionOp(ShapeKeepingOp):
    """Round each number as if its type had fewer bits: `stablehlo.reduce_precision %a, format = e5m10`"""

    name = "stablehlo.reduce_precision"

    exponent_bits = prop_def(I32_ATTR)
    mantissa_bits = prop_def(I32_ATTR)

    SPELLED: ClassVar[tuple[str, ...]] = ("exponent_bits", "mantissa_bits")

    def verify_(self) -> None:
        check_takes(self, is_float)
        check_types("C1: the result", self.result.type, self.operand.type)
        if self.exponent_bits.value.data < 1:
            raise VerifyException(f"C2: exponent_bits is {self.exponent_bits.value.data}, expected at least 1")
        if self.mantissa_bits.value.data < 0:
            raise VerifyException(f"C3: mantissa_bits is {self.mantissa_bits.value.data}, expected at least 0")

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("format")
        parser.parse_punctuation("=")
        start = parser.pos
        match = re.fullmatch(r"e([0-9]{1,20})m([0-9]{1,20})", parser.parse_identifier())
        if match is None:
            parser.raise_error("expected a format like e5m10", start, parser.pos)
        widths = [int(bits) for bits in match.groups()]
        if max(widths) >= 1 << 31:
            parser.raise_error(f"{max(widths)} does not fit in 32 bits", start, parser.pos)
        return {name: IntegerAttr(bits, i32) for name, bits in zip(cls.SPELLED, widths, strict=True)}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", format = e{self.exponent_bits.value.data}m{self.mantissa_bits.value.data}")


@irdl_op_definition
class IsFiniteOp(FunctionTypeOp):
    name = "stablehlo.is_finite"

    operand = operand_def(numbers("I1"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_takes(self, is_float)
        check_shape("C1: the result", shape_of(self.result), shape_of(self.operand))
        check_element("the result", element_of(self.result), i1)


@irdl_op_definition
class ComplexOp(SameTypeOp):
    """Form complex numbers from real and imaginary parts. Only the type of the result is printed.

    Example:
        stablehlo.complex %real, %imaginary : tensor<…xcomplex<f32>>
    """

    name = "stablehlo.complex"

    lhs = operand_def(numbers("I1"))
    rhs = operand_def(numbers("I2"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2

    def __init__(self, real: SSAValue, imaginary: SSAValue, result_type: Attribute):
        super().__init__(operands=[real, imaginary], result_types=[result_type])

    def verify_(self) -> None:
        check_types("C1: the imaginary part", self.rhs.type, self.lhs.type)
        part = _part_of(self.result.type)
        if part is None:
            raise VerifyException(f"C3: the result has type {self.result.type}, expected a tensor of complex numbers")
        check_types("C2: the real part", self.lhs.type, part)

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> Types:
        start = parser.pos
        operands, results = super().parse_types(parser, count)
        if tuple(operands) != (results[0],) * count:
            return operands, results
        part = _part_of(results[0])
        if part is None:
            parser.raise_error("expected a tensor of complex numbers", start, parser.pos)
        return [part] * count, results

    def print_types(self, printer: Printer) -> None:
        if self.lhs.type == self.rhs.type == _part_of(self.result.type):
            return printer.print_attribute(self.result.type)
        print_function_type(printer, self)


def _part_of(type: Attribute) -> Attribute | None:
    """Return the type of the real part of a tensor of complex numbers; None if the type is not such a tensor."""
    if not is_tensor(type) or not is_complex_type(type.element_type):
        return None
    return TensorType(type.element_type.element_type, type.get_shape(), type.encoding)


REPRESENTATION: list[type[Operation]] = [
    AbsOp,
    ConvertOp,
    ImagOp,
    RealOp,
    IsFiniteOp,
    ReducePrecisionOp,
    ComplexOp,
]
