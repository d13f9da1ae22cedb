"""Transforms and factorizations of whole matrices."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, TensorType, i64
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from .checks import check_takes, check_types, is_float_or_complex
from .enumerations import FftType, FftTypeAttr
from .formats import FunctionTypeOp, Properties, SameTypeOp, parse_field, print_field


@irdl_op_definition
class FftOp(FunctionTypeOp):
    """`stablehlo.fft %a, type = RFFT, length = [8] : (t) -> u`, along the last dimensions."""

    name = "stablehlo.fft"

    operand = operand_def(TensorType)
    fft_type = prop_def(FftTypeAttr)
    fft_length = prop_def(DenseArrayBase.constr(i64))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("fft_type", "fft_length")

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("type")
        parser.parse_punctuation("=")
        type_ = FftTypeAttr(parser.parse_str_enum(FftType))
        return {"fft_type": type_, "fft_length": parse_field(parser, "length")}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", type = {self.fft_type.data.value}")
        print_field(printer, "length", self.fft_length)


@irdl_op_definition
class CholeskyOp(SameTypeOp):
    """`stablehlo.cholesky %a, lower = true : t`"""

    name = "stablehlo.cholesky"

    a = operand_def(TensorType)
    lower = prop_def(BoolAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("lower",)

    def verify_(self) -> None:
        check_types("the result", self.result.type, self.a.type)
        check_takes(self, is_float_or_complex)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("lower")
        parser.parse_punctuation("=")
        return {"lower": BoolAttr.from_bool(parser.parse_boolean())}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", lower = {str(bool(self.lower)).lower()}")


LINEAR_ALGEBRA: list[type[Operation]] = [FftOp, CholeskyOp]
