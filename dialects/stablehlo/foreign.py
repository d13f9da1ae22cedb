"""Operations whose meaning lies outside the program: bits from a random generator, and calls of foreign functions."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Operation
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from .checks import check_types
from .enumerations import RngAlgorithm, RngAlgorithmAttr
from .formats import FunctionTypeOp, Properties, parse_all_operands, print_attributes


@irdl_op_definition
class RngBitGeneratorOp(FunctionTypeOp):
    """`stablehlo.rng_bit_generator %state, algorithm = THREE_FRY`: random bits and the next state, from this state."""

    name = "stablehlo.rng_bit_generator"

    initial_state = operand_def(TensorType)
    rng_algorithm = prop_def(RngAlgorithmAttr)
    output_state = result_def(TensorType)
    output = result_def(TensorType)

    # The state is a value: the same one gives the same bits.
    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("rng_algorithm",)

    def verify_(self) -> None:
        check_types("the next state", self.output_state.type, self.initial_state.type)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("algorithm")
        parser.parse_punctuation("=")
        return {"rng_algorithm": RngAlgorithmAttr(parser.parse_str_enum(RngAlgorithm))}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", algorithm = {self.rng_algorithm.data.value}")


@irdl_op_definition
class CustomCallOp(FunctionTypeOp):
    """`stablehlo.custom_call @target(%a) {…}`. Its effects are unknown."""

    name = "stablehlo.custom_call"

    inputs = var_operand_def()
    call_target_name = prop_def(StringAttr)
    has_side_effect = opt_prop_def()
    backend_config = opt_prop_def()
    api_version = opt_prop_def()
    called_computations = opt_prop_def()
    operand_layouts = opt_prop_def()
    result_layouts = opt_prop_def()
    output_operand_aliases = opt_prop_def()
    result_tilings = opt_prop_def()
    result = var_result_def()

    SPELLED: ClassVar[tuple[str, ...]] = ("call_target_name",)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        target = parser.parse_symbol_name()
        start = parser.pos
        with parser.in_parens():
            operands = parse_all_operands(parser)
        op = cls.parse_rest(parser, operands, start)
        op.call_target_name = target
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.call_target_name.data)
        with printer.in_parens():
            printer.print_list(self.operands, printer.print_operand)
        print_attributes(printer, self, self.SPELLED)
        printer.print_string(" : ")
        self.print_types(printer)


FOREIGN: list[type[Operation]] = [RngBitGeneratorOp, CustomCallOp]
