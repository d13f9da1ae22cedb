"""Parts of StableHLO's custom assembly that operations share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self, TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IntegerAttr, IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ...support.caching_printer import print_cached
from .attributes import parse_dimensions

I64Array: TypeAlias = DenseArrayBase[IntegerType]
Properties: TypeAlias = dict[str, Attribute]
Types: TypeAlias = tuple[Sequence[Attribute], Sequence[Attribute]]
"""The types of operands and of results."""


I64_ATTR = IntegerAttr.constr(i64)
I32_ATTR = IntegerAttr.constr(i32)


def i64_array(values: Iterable[int]) -> I64Array:
    return DenseArrayBase.from_list(i64, tuple(values))


def parse_operands(parser: Parser, count: int) -> list[UnresolvedOperand]:
    """Parse exactly `count` operands: `%a, %b`"""
    operands: list[UnresolvedOperand] = []
    for index in range(count):
        if index:
            parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
    return operands


def parse_all_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Parse a possibly empty list of operands: `%a, %b`"""
    operands = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    return operands or []


def parse_located_argument(parser: Parser) -> Parser.Argument:
    """Parse an argument of a region, whose location is optional: `%a: type loc(…)`"""
    argument = parser.parse_argument()
    argument.location = parser.parse_optional_location()
    return argument


def parse_attributes(
    parser: Parser, op_type: type[IRDLOperation], spelled: Sequence[str] = ()
) -> tuple[Properties, Properties]:
    """Parse the optional attribute dictionary `{…}` of a custom format, and return its properties and discardable
    attributes. `spelled`: the properties that the format prints elsewhere, which must not be in the dictionary.
    """
    start = parser.pos
    attributes = parser.parse_optional_attr_dict()
    if not attributes:
        return {}, {}
    for name in spelled:
        if name in attributes:
            words = f"belongs in the format of {op_type.name}, not in its attribute dictionary"
            parser.raise_error(f"'{name}' {words}", start)
    names = [name for name in op_type.get_irdl_definition().properties if name in attributes]
    return {name: attributes.pop(name) for name in names}, attributes


def print_attributes(printer: Printer, op: IRDLOperation, spelled: Sequence[str] = ()) -> None:
    """Print `{…}` with the attributes of `op`, and with its properties except `spelled`, which the format prints
    elsewhere."""
    # Properties are printed in the order of their definition, in which the parser also stores them.
    defined = op.get_irdl_definition().properties
    properties = {name: op.properties[name] for name in defined if name in op.properties and name not in spelled}
    printer.print_op_attributes(properties | op.attributes)


def parse_type_list(parser: Parser) -> list[Attribute]:
    """Parse a list of types after a colon: `: type, type`"""
    parser.parse_punctuation(":")
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def print_function_type(printer: Printer, op: IRDLOperation) -> None:
    printer.print_function_type(op.operand_types, op.result_types)


def print_operands(printer: Printer, operands: Sequence[SSAValue]) -> None:
    if operands:
        printer.print_string(" ")
        printer.print_list(operands, printer.print_operand)


def parse_field(parser: Parser, keyword: str) -> I64Array:
    """Parse a list of integers after a comma and a keyword: `, keyword = [0, 1]`"""
    parser.parse_punctuation(",")
    return parse_assigned(parser, keyword)


def parse_assigned(parser: Parser, keyword: str) -> I64Array:
    """Parse a list of integers after a keyword: `keyword = [0, 1]`"""
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    return i64_array(parse_dimensions(parser))


def print_field(printer: Printer, keyword: str, values: I64Array) -> None:
    """Print a list of integers after a comma and a keyword: `, keyword = [0, 1]`"""
    printer.print_string(f", {keyword} = {list(values.get_values())}")


def parse_operands_before_field(parser: Parser) -> list[UnresolvedOperand]:
    """Parse any number of operands, each followed by a comma: `%a, %b,`"""
    operands: list[UnresolvedOperand] = []
    while (operand := parser.parse_optional_unresolved_operand()) is not None:
        operands.append(operand)
        parser.parse_punctuation(",")
    return operands


class CustomFormatOp(IRDLOperation):
    """Base class of operations printed as `name %a, %b <own part> {…} : <types>`."""

    ARITY: ClassVar[int] = 1
    SPELLED: ClassVar[tuple[str, ...]] = ()
    """The properties that `print_own` prints."""

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        """Parse the operation-specific part of the custom form, between operands and attributes."""
        return {}

    def print_own(self, printer: Printer) -> None:
        """Print the part of the custom form between operands and attributes. The text must depend only on the
        properties."""

    @classmethod
    @abstractmethod
    def parse_types(cls, parser: Parser, count: int) -> Types:
        """Parse the types of `count` operands and of the results."""

    @abstractmethod
    def print_types(self, printer: Printer) -> None:
        """Print the types of operands and results. Their text must depend only on these types."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        return cls.parse_rest(parser, cls.parse_operand_names(parser), start)

    @classmethod
    def parse_operand_names(cls, parser: Parser) -> list[UnresolvedOperand]:
        """Parse the list of operands. By default there are `ARITY` operands, separated by commas."""
        return parse_operands(parser, cls.ARITY)

    @classmethod
    def parse_rest(cls, parser: Parser, operands: Sequence[UnresolvedOperand], start: int) -> Self:
        """Parse the part after the operands, and create the operation."""
        spelled = cls.parse_own(parser)
        properties, attributes = parse_attributes(parser, cls, cls.SPELLED)
        parser.parse_punctuation(":")
        operand_types, result_types = cls.parse_types(parser, len(operands))
        return cls.create(
            operands=parser.resolve_operands(operands, operand_types, start),
            result_types=result_types,
            properties={**spelled, **properties},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_cached(printer, " ".join((self.name, *self.properties)), tuple(self.properties.values()), self.print_own)
        print_attributes(printer, self, self.SPELLED)
        printer.print_string(" : ")
        print_cached(printer, f"{self.name} types", (*self.operand_types, *self.result_types), self.print_types)


class SameTypeOp(CustomFormatOp):
    """Base class of operations that print `: type` if all operands and the result have the same type, otherwise a
    function type."""

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> Types:
        type = parser.parse_type()
        if isinstance(type, FunctionType):
            return type.inputs.data, type.outputs.data
        return [type] * count, [type]

    def print_types(self, printer: Printer) -> None:
        result = self.results[0].type
        if all(operand.type == result for operand in self.operands):
            printer.print_attribute(result)
        else:
            print_function_type(printer, self)


class FunctionTypeOp(CustomFormatOp):
    """Base class of operations that print a function type: `: (types) -> types`."""

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> Types:
        types = parser.parse_function_type()
        return types.inputs.data, types.outputs.data

    def print_types(self, printer: Printer) -> None:
        print_function_type(printer, self)


class ResultTypeOp(CustomFormatOp):
    """Base class of operations without operands that print the type of their result: `: type`."""

    ARITY: ClassVar[int] = 0

    @classmethod
    def parse_types(cls, parser: Parser, count: int) -> Types:
        return [], [parser.parse_type()]

    def print_types(self, printer: Printer) -> None:
        printer.print_attribute(self.results[0].type)
