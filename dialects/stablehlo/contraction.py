"""`stablehlo.dot_general`: batched products of matrices."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .checks import check_dimensions, check_shape, shape_of
from .enumerations import Precision, PrecisionAttr
from .formats import FunctionTypeOp, Properties
from .records import DotAlgorithmAttr, DotAttr, DotDimensions, parse_dimensions


@irdl_op_definition
class DotGeneralOp(FunctionTypeOp):
    """`%a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT]`

    The result has the batching dimensions first, then what is left of the left operand, then of the right one.
    """

    name = "stablehlo.dot_general"

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    dot_dimension_numbers = prop_def(DotAttr)
    precision_config = opt_prop_def(ArrayAttr[PrecisionAttr])
    algorithm = opt_prop_def(DotAlgorithmAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2
    SPELLED: ClassVar[tuple[str, ...]] = ("dot_dimension_numbers", "precision_config", "algorithm")

    def __init__(self, lhs: SSAValue, rhs: SSAValue, dimensions: DotDimensions, result_type: Attribute):
        properties = {"dot_dimension_numbers": DotAttr(dimensions)}
        super().__init__(operands=[lhs, rhs], result_types=[result_type], properties=properties)

    def verify_(self) -> None:
        numbers = self.dot_dimension_numbers.data
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        left = numbers.lhs_batching_dimensions + numbers.lhs_contracting_dimensions
        right = numbers.rhs_batching_dimensions + numbers.rhs_contracting_dimensions
        check_dimensions("the left dimensions", left, len(lhs))
        check_dimensions("the right dimensions", right, len(rhs))
        if len(numbers.lhs_batching_dimensions) != len(numbers.rhs_batching_dimensions) or len(left) != len(right):
            raise VerifyException("batching and contracting dimensions come in pairs")
        check_shape("the right side of the pairs", [rhs[d] for d in right], [lhs[d] for d in left])
        batch = [lhs[d] for d in numbers.lhs_batching_dimensions]
        free = [n for d, n in enumerate(lhs) if d not in left] + [n for d, n in enumerate(rhs) if d not in right]
        check_shape("the result", shape_of(self.result), batch + free)
        if self.precision_config is not None and len(self.precision_config) not in (0, 2):
            raise VerifyException("a precision is given for both operands or for none")

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        parser.parse_punctuation(",")
        batching = ((), ())
        if parser.parse_optional_keyword("batching_dims") is not None:
            batching = _parse_pair(parser)
            parser.parse_punctuation(",")
        parser.parse_keyword("contracting_dims")
        contracting = _parse_pair(parser)
        properties: Properties = {"dot_dimension_numbers": DotAttr(DotDimensions(*batching, *contracting))}
        while parser.parse_optional_punctuation(",") is not None:
            if parser.parse_optional_keyword("precision") is not None:
                parser.parse_punctuation("=")
                properties["precision_config"] = _parse_precisions(parser)
            else:
                parser.parse_keyword("algorithm")
                parser.parse_punctuation("=")
                properties["algorithm"] = DotAlgorithmAttr(DotAlgorithmAttr.parse_parameter(parser))
        return properties

    def print_own(self, printer: Printer) -> None:
        numbers = self.dot_dimension_numbers.data
        if numbers.lhs_batching_dimensions or numbers.rhs_batching_dimensions:
            lhs, rhs = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
            printer.print_string(f", batching_dims = {lhs} x {rhs}")
        lhs, rhs = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
        printer.print_string(f", contracting_dims = {lhs} x {rhs}")
        if self.precision_config is not None:
            names = (precision.data.value for precision in self.precision_config)
            printer.print_string(f", precision = [{', '.join(names)}]")
        if self.algorithm is not None:
            printer.print_string(", algorithm = ")
            self.algorithm.print_parameter(printer)


def _parse_pair(parser: Parser) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`= [0] x [1]`"""
    parser.parse_punctuation("=")
    lhs = parse_dimensions(parser)
    parser.parse_keyword("x")
    return lhs, parse_dimensions(parser)


def _parse_precisions(parser: Parser) -> ArrayAttr[PrecisionAttr]:
    names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_str_enum(Precision))
    return ArrayAttr([PrecisionAttr(name) for name in names])


CONTRACTION: list[type[Operation]] = [DotGeneralOp]
