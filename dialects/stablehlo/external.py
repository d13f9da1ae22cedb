"""Operations that are implemented outside the program: random generators, and calls to foreign functions."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .attributes import RngAlgorithm, RngAlgorithmAttr, RngDistribution, RngDistributionAttr
from .checks import (
    Constraint,
    check_element,
    check_shape,
    check_static,
    check_takes,
    check_types,
    element_of,
    is_float,
    is_integer_or_float,
    shape_of,
    verify_constraints,
)
from .custom_call import CustomCallOp
from .dynamic_shapes import check_dimension_tensor, constant_integers
from .formats import FunctionTypeOp, Properties
from .tensors import numbers


@irdl_op_definition
class RngBitGeneratorOp(FunctionTypeOp):
    """Return the next state of a generator, and random bits, both computed from the given state.

    Example:
        stablehlo.rng_bit_generator %state, algorithm = THREE_FRY
    """

    name = "stablehlo.rng_bit_generator"

    initial_state = operand_def(numbers("I2"))
    rng_algorithm = prop_def(RngAlgorithmAttr)
    output_state = result_def(TensorType)
    output = result_def(TensorType)

    # The state is an operand: equal states give equal bits.
    traits = traits_def(Pure())

    SPELLED: ClassVar[tuple[str, ...]] = ("rng_algorithm",)

    def verify_(self) -> None:
        check_takes(self, is_integer_or_float)
        check_types("C1: the next state", self.output_state.type, self.initial_state.type)
        check_static("the result", self.output)
        if not is_integer_or_float(element_of(self.output)):
            raise VerifyException(
                f"the result has elements of type {element_of(self.output)}, expected integers or floats"
            )

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("algorithm")
        parser.parse_punctuation("=")
        return {"rng_algorithm": RngAlgorithmAttr(parser.parse_str_enum(RngAlgorithm))}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", algorithm = {self.rng_algorithm.data.value}")


@irdl_op_definition
class RngOp(FunctionTypeOp):
    """Return random numbers drawn from a state outside the program.

    Example:
        stablehlo.rng %a, %b, %shape, distribution = UNIFORM
    """

    name = "stablehlo.rng"

    a = operand_def(numbers("I1"))
    b = operand_def(numbers("I2"))
    shape = operand_def(numbers("I3"))
    rng_distribution = prop_def(RngDistributionAttr)
    result = result_def(TensorType)

    ARITY: ClassVar[int] = 3
    SPELLED: ClassVar[tuple[str, ...]] = ("rng_distribution",)

    def verify_(self) -> None:
        verify_constraints(self, RNG_CONSTRAINTS)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        parser.parse_keyword("distribution")
        parser.parse_punctuation("=")
        return {"rng_distribution": RngDistributionAttr(parser.parse_str_enum(RngDistribution))}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(f", distribution = {self.rng_distribution.data.value}")


def _check_scalars(op: RngOp) -> None:
    for value in (op.a, op.b):
        check_shape("a bound", shape_of(value), [])


def _check_elements(op: RngOp) -> None:
    for subject, value in (("b", op.b), ("the result", op.result)):
        check_element(subject, element_of(value), element_of(op.a))


def _check_distribution(op: RngOp) -> None:
    if op.rng_distribution.data is RngDistribution.NORMAL and not is_float(element_of(op.a)):
        raise VerifyException(f"a normal distribution requires floats, found {element_of(op.a)}")


def _check_shape(op: RngOp) -> None:
    """Check the shape of the result against the shape operand, if this operand is a constant."""
    check_dimension_tensor("shape", op.shape, len(shape_of(op.result)))
    if (extents := constant_integers(op.shape)) is not None:
        check_shape("the result", shape_of(op.result), extents)


RNG_CONSTRAINTS: tuple[Constraint[RngOp], ...] = (
    Constraint("I1", _check_scalars),
    Constraint("C1", _check_elements),
    Constraint("C2", _check_distribution),
    Constraint("C3", _check_shape),
)

FOREIGN: list[type[Operation]] = [RngBitGeneratorOp, RngOp, CustomCallOp]
