"""Tuples, with which older exporters return the results of a function.

Examples:
    %t = stablehlo.tuple %a, %b : tuple<tensor<f32>, tensor<i32>>
    %b = stablehlo.get_tuple_element %t[1] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<i32>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self, cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, IntegerAttr, TupleType, i32
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .attributes import parse_int64
from .checks import Constraint, check_types, verify_constraints
from .control import check_all
from .formats import (
    I32_ATTR,
    FunctionTypeOp,
    Types,
    parse_attributes,
    parse_operands,
    print_attributes,
    print_function_type,
    print_operands,
)


def leaf_types(types: Iterable[Attribute]) -> list[Attribute]:
    """Return the types, with tuples replaced by the types of their elements, recursively."""
    return [leaf for type_ in types for leaf in (leaf_types(type_.types) if isinstance(type_, TupleType) else [type_])]


@irdl_op_definition
class TupleOp(FunctionTypeOp):
    """Return a tuple of the operands. Only the type of the tuple is printed."""

    name = "stablehlo.tuple"

    val = var_operand_def()
    result = result_def(TupleType)

    traits = traits_def(Pure())

    def __init__(self, values: Sequence[SSAValue]):
        types = ArrayAttr(cast(Sequence[TypeAttribute], [value.type for value in values]))
        super().__init__(operands=[values], result_types=[TupleType(types)])

    def verify_(self) -> None:
        verify_constraints(self, TUPLE_CONSTRAINTS)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start, operands = parser.pos, list[UnresolvedOperand]()
        while (operand := parser.parse_optional_unresolved_operand()) is not None:
            operands.append(operand)
            if parser.parse_optional_punctuation(",") is None:
                return cls.parse_rest(parser, operands, start)
        if operands:
            parser.raise_error("expected an operand after ','")
        return cls.parse_rest(parser, operands, start)

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> Types:
        start, type_ = parser.pos, parser.parse_type()
        if isinstance(type_, FunctionType):
            return type_.inputs.data, type_.outputs.data
        if not isinstance(type_, TupleType):
            parser.raise_error("expected a type tuple<...>", start, parser.pos)
        return type_.types.data, [type_]

    def print_types(self, printer: Printer) -> None:
        if self.result.type.types.data == tuple(self.operand_types):
            return printer.print_attribute(self.result.type)
        print_function_type(printer, self)


def _check_elements(op: TupleOp) -> None:
    check_all("the types of the tuple", op.result.type.types.data, op.operand_types)


TUPLE_CONSTRAINTS: tuple[Constraint[TupleOp], ...] = (Constraint("C1", _check_elements),)


@irdl_op_definition
class GetTupleElementOp(FunctionTypeOp):
    """Return an element of a tuple: `stablehlo.get_tuple_element %t[1]`"""

    name = "stablehlo.get_tuple_element"

    operand = operand_def(TupleType)
    index = prop_def(I32_ATTR)
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue, index: int):
        assert isinstance(operand.type, TupleType), "only a tuple has elements"
        types: Sequence[Attribute] = operand.type.types.data
        super().__init__(operands=[operand], result_types=[types[index]], properties={"index": IntegerAttr(index, i32)})

    def verify_(self) -> None:
        verify_constraints(self, ELEMENT_CONSTRAINTS)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        operands = parse_operands(parser, 1)
        with parser.in_square_brackets():
            index = IntegerAttr(parse_int64(parser), i32)
        _, attributes = parse_attributes(parser, cls, ("index",))
        parser.parse_punctuation(":")
        operand_types, result_types = cls.parse_types(parser, 1)
        return cls.create(
            operands=parser.resolve_operands(operands, operand_types, start),
            result_types=result_types,
            properties={"index": index},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_string(f"[{self.index.value.data}]")
        print_attributes(printer, self, ("index",))
        printer.print_string(" : ")
        self.print_types(printer)


def _elements(op: GetTupleElementOp) -> Sequence[Attribute]:
    assert isinstance(op.operand.type, TupleType), "the definition of the operation requires a tuple"
    return op.operand.type.types.data


def _check_index(op: GetTupleElementOp) -> None:
    index, count = op.index.value.data, len(_elements(op))
    if not 0 <= index < count:
        raise VerifyException(f"index {index} is out of range for {op.operand.type} with {count} elements")


ELEMENT_CONSTRAINTS: tuple[Constraint[GetTupleElementOp], ...] = (
    Constraint("C1", _check_index),
    Constraint("C2", lambda op: check_types("the result", op.result.type, _elements(op)[op.index.value.data])),
)

TUPLES: list[type[Operation]] = [TupleOp, GetTupleElementOp]
