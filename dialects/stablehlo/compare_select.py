"""Elementwise comparison, selection and clamping."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import FunctionType, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...support.type_guards import is_complex_type, is_unsigned
from .attributes import ComparisonDirection, ComparisonDirectionAttr, ComparisonType, ComparisonTypeAttr
from .checks import (
    ElementPredicate,
    check_element,
    check_shape,
    check_types,
    element_of,
    is_float,
    is_integer,
    shape_of,
)
from .formats import (
    FunctionTypeOp,
    Properties,
    SameTypeOp,
    parse_attributes,
    parse_operands,
    print_attributes,
    print_function_type,
    print_operands,
)
from .tensors import numbers


@irdl_op_definition
class CompareOp(FunctionTypeOp):
    """Compare two tensors elementwise: `stablehlo.compare LT, %a, %b, FLOAT : (t, t) -> tensor<…xi1>`"""

    name = "stablehlo.compare"

    lhs = operand_def(numbers("I1"))
    rhs = operand_def(numbers("I2"))
    comparison_direction = prop_def(ComparisonDirectionAttr)
    compare_type = opt_prop_def(ComparisonTypeAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    ARITY: ClassVar[int] = 2
    SPELLED: ClassVar[tuple[str, ...]] = ("comparison_direction", "compare_type")

    def __init__(
        self, lhs: SSAValue, rhs: SSAValue, direction: ComparisonDirection, compare_type: ComparisonType | None = None
    ):
        properties: dict[str, Attribute | None] = {
            "comparison_direction": ComparisonDirectionAttr(direction),
            "compare_type": None if compare_type is None else ComparisonTypeAttr(compare_type),
        }
        super().__init__(operands=[lhs, rhs], result_types=[TensorType(i1, shape_of(lhs))], properties=properties)

    def verify_(self) -> None:
        check_types("C1: the right operand", self.rhs.type, self.lhs.type)
        check_shape("C2: the result", shape_of(self.result), shape_of(self.lhs))
        check_element("the result", element_of(self.result), i1)
        check_comparison_type(element_of(self.lhs), self.compare_type and self.compare_type.data)

    @classmethod
    def parse(cls, parser: Parser) -> CompareOp:
        direction = ComparisonDirectionAttr(parser.parse_str_enum(ComparisonDirection))
        parser.parse_punctuation(",")
        start = parser.pos
        op = cls.parse_rest(parser, parse_operands(parser, cls.ARITY), start)
        op.comparison_direction = direction
        return op

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        if parser.parse_optional_punctuation(",") is None:
            return {}
        return {"compare_type": ComparisonTypeAttr(parser.parse_str_enum(ComparisonType))}

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.comparison_direction.data.value},")
        super().print(printer)

    def print_own(self, printer: Printer) -> None:
        if self.compare_type is not None:
            printer.print_string(f", {self.compare_type.data.value}")


def check_comparison_type(element: Attribute, compare_type: ComparisonType | None) -> None:
    """Check that the comparison type is valid for the element type. `NOTYPE` is always valid."""
    allowed = next((types for is_of, types in COMPARISON_TYPES if is_of(element)), None)
    if compare_type is None or allowed is None or compare_type in (ComparisonType.NOTYPE, *allowed):
        return
    words = " or ".join(allowed)
    raise VerifyException(f"C4: compare_type is {compare_type}, expected {words} for elements of type {element}")


COMPARISON_TYPES: tuple[tuple[ElementPredicate, tuple[ComparisonType, ...]], ...] = (
    (is_float, (ComparisonType.FLOAT, ComparisonType.TOTALORDER)),
    (is_complex_type, (ComparisonType.FLOAT,)),
    (lambda element: element == i1 or is_unsigned(element), (ComparisonType.UNSIGNED,)),
    (is_integer, (ComparisonType.SIGNED,)),
)
"""The valid comparison types for each kind of element type, as in constraint C4 of the specification."""


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Select each element from one of two tensors, according to a predicate. The predicate may be a scalar.

    Example:
        stablehlo.select %predicate, %a, %b : tensor<…xi1>, type
    """

    name = "stablehlo.select"

    pred = operand_def(numbers("I1"))
    on_true = operand_def(numbers("I2"))
    on_false = operand_def(numbers("I3"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, pred: SSAValue, on_true: SSAValue, on_false: SSAValue):
        super().__init__(operands=[pred, on_true, on_false], result_types=[on_true.type])

    def verify_(self) -> None:
        check_types("C2: on_false", self.on_false.type, self.on_true.type)
        check_types("C2: the result", self.result.type, self.on_true.type)
        check_element("I1: the predicate", element_of(self.pred), i1)
        if shape_of(self.pred):
            check_shape("C1: the predicate", shape_of(self.pred), shape_of(self.on_true))

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        start = parser.pos
        operands = parse_operands(parser, 3)
        properties, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        first = parser.parse_type()
        if isinstance(first, FunctionType):
            types, results = first.inputs.data, first.outputs.data
        else:
            parser.parse_punctuation(",")
            result = parser.parse_type()
            types, results = (first, result, result), (result,)
        resolved = parser.resolve_operands(operands, types, start)
        return cls.create(operands=resolved, result_types=results, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attributes(printer, self)
        printer.print_string(" : ")
        if not self.on_true.type == self.on_false.type == self.result.type:
            return print_function_type(printer, self)
        printer.print_list((self.pred.type, self.result.type), printer.print_attribute)


@irdl_op_definition
class ClampOp(SameTypeOp):
    """Clamp each element between two bounds. The bounds may be scalars."""

    name = "stablehlo.clamp"
    ARITY: ClassVar[int] = 3

    min = operand_def(numbers("I1"))
    operand = operand_def(numbers("I2"))
    max = operand_def(numbers("I3"))
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(self, min: SSAValue, operand: SSAValue, max: SSAValue):
        super().__init__(operands=[min, operand, max], result_types=[operand.type])

    def verify_(self) -> None:
        check_types("C4: the result", self.result.type, self.operand.type)
        for label, bound in (("C1", self.min), ("C2", self.max)):
            check_element("C3: a bound", element_of(bound), element_of(self.operand))
            if shape_of(bound):
                check_shape(f"{label}: a bound", shape_of(bound), shape_of(self.operand))


ELEMENTWISE: list[type[Operation]] = [CompareOp, SelectOp, ClampOp]
