"""`stablehlo.dot_general`: batched matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .attributes import (
    Dimensions,
    DotAlgorithmAttr,
    DotAttr,
    DotDimensions,
    Precision,
    PrecisionAttr,
    check_precisions,
    parse_dimensions,
)
from .checks import (
    Constraint,
    check_count,
    check_distinct,
    check_shape,
    check_within,
    element_of,
    shape_of,
    verify_constraints,
)
from .formats import FunctionTypeOp, Properties
from .quantized_types import ProductLabels, QuantizedType, check_quantized_product, is_quantized
from .tensors import numbers, tensors

LHS_BATCHING, LHS_CONTRACTING = "lhs_batching_dimensions", "lhs_contracting_dimensions"
RHS_BATCHING, RHS_CONTRACTING = "rhs_batching_dimensions", "rhs_contracting_dimensions"


@irdl_op_definition
class DotGeneralOp(FunctionTypeOp):
    """Multiply tensors, and sum the products over the contracting dimensions.

    Example:
        stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]

    The result has the batching dimensions, then the free dimensions (neither batching nor contracting) of the left
    operand, then the free dimensions of the right operand.
    """

    name = "stablehlo.dot_general"

    lhs = operand_def(numbers("I1"))
    rhs = operand_def(tensors("I2"))
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
        verify_constraints(self, CONSTRAINTS)
        _check_quantized(self)

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
        if parser.parse_optional_punctuation(",") is None:
            return properties
        if parser.parse_optional_keyword("precision") is not None:
            parser.parse_punctuation("=")
            properties["precision_config"] = parse_precisions(parser)
            if parser.parse_optional_punctuation(",") is None:
                return properties
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
    """Parse the dimensions of both operands: `= [0] x [1]`"""
    parser.parse_punctuation("=")
    lhs = parse_dimensions(parser)
    parser.parse_keyword("x")
    return lhs, parse_dimensions(parser)


def parse_precisions(parser: Parser) -> ArrayAttr[PrecisionAttr]:
    names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_str_enum(Precision))
    return ArrayAttr([PrecisionAttr(name) for name in names])


Check: TypeAlias = Callable[[DotGeneralOp], None]


def _dimensions(op: DotGeneralOp, *names: str) -> Dimensions:
    return tuple(dimension for name in names for dimension in getattr(op.dot_dimension_numbers.data, name))


def _extents(op: DotGeneralOp, name: str) -> list[int]:
    """Return the extents along the dimensions in the field `name`, whose first three letters name the operand."""
    shape = shape_of(getattr(op, name[: len("lhs")]))
    return [shape[dimension] for dimension in _dimensions(op, name)]


def _requires_equal_counts(lhs: str, rhs: str) -> Check:
    return lambda op: check_count(rhs, len(_dimensions(op, rhs)), len(_dimensions(op, lhs)))


def _requires_distinct(*names: str) -> Check:
    return lambda op: check_distinct(" and ".join(names), _dimensions(op, *names))


def _requires_within(name: str) -> Check:
    return lambda op: check_within(name, _dimensions(op, name), len(shape_of(getattr(op, name[: len("lhs")]))))


def _requires_equal_extents(lhs: str, rhs: str) -> Check:
    return lambda op: check_shape(f"the part along {rhs}", _extents(op, rhs), _extents(op, lhs))


def _free_extents(op: DotGeneralOp, value: SSAValue, *names: str) -> list[int]:
    paired = _dimensions(op, *names)
    return [extent for dimension, extent in enumerate(shape_of(value)) if dimension not in paired]


def _check_result(op: DotGeneralOp) -> None:
    lhs, rhs = (
        _free_extents(op, op.lhs, LHS_BATCHING, LHS_CONTRACTING),
        _free_extents(op, op.rhs, RHS_BATCHING, RHS_CONTRACTING),
    )
    check_shape("the result", shape_of(op.result), [*_extents(op, LHS_BATCHING), *lhs, *rhs])


def _check_default_precision(op: DotGeneralOp) -> None:
    precisions = op.precision_config if op.precision_config is not None else ()
    if op.algorithm is not None and any(precision.data != Precision.DEFAULT for precision in precisions):
        raise VerifyException("if an algorithm is specified, each precision must be DEFAULT")


def _requires_positive(name: str) -> Check:
    """Return a check that the field `name` of the algorithm is positive, if an algorithm is specified."""

    def check(op: DotGeneralOp) -> None:
        if op.algorithm is not None and (count := getattr(op.algorithm.data, name)) < 1:
            raise VerifyException(f"{name} is {count}, expected a positive number")

    return check


SIMPLE_ALGORITHMS = frozenset(
    {
        ("f16", "f16", 1),
        ("f16", "f32", 1),
        ("bf16", "bf16", 1),
        *(("bf16", "f32", count) for count in (1, 3, 6, 9)),
        *(("tf32", "f32", count) for count in (1, 3)),
        ("f32", "f32", 1),
        ("f64", "f64", 1),
    }
)
"""The algorithms that some hardware supports, as in `getKnownDotAlgorithm` in StableHLO's `Base.cpp`.

Each is given by the type of both operands, the type of the sum, and the number of products. Algorithms for 8-bit floats
are not listed here; they sum in f32."""


def _check_algorithm(op: DotGeneralOp) -> None:
    """Check that some hardware supports the algorithm, if there is one."""
    if op.algorithm is None:
        return
    algorithm = op.algorithm.data
    left, right = str(algorithm.lhs_precision_type), str(algorithm.rhs_precision_type)
    total = str(algorithm.accumulation_type)
    count = algorithm.num_primitive_operations
    known = algorithm.lhs_component_count == algorithm.rhs_component_count == 1 and (
        (total, count) == ("f32", 1)
        if left.startswith("f8") and right.startswith("f8")
        else left == right and (left, total, count) in SIMPLE_ALGORITHMS and not algorithm.allow_imprecise_accumulation
    )
    if not known:
        raise VerifyException(f"no known hardware supports the algorithm {op.algorithm}")


def _check_quantized(op: DotGeneralOp) -> None:
    """Check the element types of quantized operands and results: constraints C14 to C20."""
    if not is_quantized(op.lhs, op.rhs, op.result):
        return
    check_quantized_product(QUANTIZED, *(element_of(value) for value in (op.lhs, op.rhs, op.result)))
    rhs = QuantizedType.of(element_of(op.rhs))
    if rhs is None:
        return
    if any(rhs.zero_points):
        raise VerifyException(f"C15: the zero points of the right operand are {list(rhs.zero_points)}, expected 0")
    if rhs.dimension in _dimensions(op, RHS_CONTRACTING):
        raise VerifyException(
            f"C16: the quantization dimension of the right operand ({rhs.dimension}) must not be a contracting "
            "dimension"
        )


QUANTIZED = ProductLabels(quantized="C14", storage="C17", expressed="C18", granularity="C19", hybrid="C20")
CONSTRAINTS: tuple[Constraint[DotGeneralOp], ...] = (
    Constraint("C11", lambda op: check_precisions(op.precision_config)),
    Constraint("C1", _requires_equal_counts(LHS_BATCHING, RHS_BATCHING)),
    Constraint("C2", _requires_equal_counts(LHS_CONTRACTING, RHS_CONTRACTING)),
    Constraint("C3", _requires_distinct(LHS_BATCHING, LHS_CONTRACTING)),
    Constraint("C4", _requires_distinct(RHS_BATCHING, RHS_CONTRACTING)),
    Constraint("C5", _requires_within(LHS_BATCHING)),
    Constraint("C6", _requires_within(LHS_CONTRACTING)),
    Constraint("C7", _requires_within(RHS_BATCHING)),
    Constraint("C8", _requires_within(RHS_CONTRACTING)),
    Constraint("C9", _requires_equal_extents(LHS_BATCHING, RHS_BATCHING)),
    Constraint("C10", _requires_equal_extents(LHS_CONTRACTING, RHS_CONTRACTING)),
    Constraint("C12", _check_result),
    Constraint("C21", _check_default_precision),
    Constraint("C22", _requires_positive("lhs_component_count")),
    Constraint("C23", _requires_positive("rhs_component_count")),
    Constraint("C24", _requires_positive("num_primitive_operations")),
    Constraint("I8", _check_algorithm),
)

CONTRACTION: list[type[Operation]] = [DotGeneralOp]
