"""Operations implemented outside the program: bits from a random generator, and calls of foreign functions."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import check_static, check_takes, check_types, element_of, is_integer_or_float
from .custom_call import CustomCallOp
from .enumerations import RngAlgorithm, RngAlgorithmAttr
from .formats import FunctionTypeOp, Properties
from .tensors import NUMBERS


@irdl_op_definition
class RngBitGeneratorOp(FunctionTypeOp):
    """`stablehlo.rng_bit_generator %state, algorithm = THREE_FRY`: random bits and the next state, from this state."""

    name = "stablehlo.rng_bit_generator"

    initial_state = operand_def(NUMBERS)
    rng_algorithm = prop_def(RngAlgorithmAttr)
    output_state = result_def(TensorType)
    output = result_def(TensorType)

    # The state is an operand: equal states give equal bits.
    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("rng_algorithm",)

    def verify_(self) -> None:
        check_takes(self, is_integer_or_float)
        check_types("the next state", self.output_state.type, self.initial_state.type)
        check_static("the result", self.output)
        if not is_integer_or_float(element_of(self.output)):
            raise VerifyException(f"random bits do not make elements of type {element_of(self.output)}")

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("algorithm")
        parser.parse_punctuation("=")
        return {"rng_algorithm": RngAlgorithmAttr(parser.parse_str_enum(RngAlgorithm))}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", algorithm = {self.rng_algorithm.data.value}")


FOREIGN: list[type[Operation]] = [RngBitGeneratorOp, CustomCallOp]
