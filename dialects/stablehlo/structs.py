"""The assembly of record attributes: `<name = [0, 1], other = 2>`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, get_type_hints

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Dimensions: TypeAlias = tuple[int, ...]
RecordT = TypeVar("RecordT", bound="DataclassInstance")


def parse_int64(parser: AttrParser) -> int:
    start = parser.pos
    value = parser.parse_integer()
    if not -(1 << 63) <= value < 1 << 63:
        parser.raise_error(f"{value} does not fit 64 bits", start, parser.pos)
    return value


def parse_dimensions(parser: AttrParser) -> Dimensions:
    """`[0, 1]`"""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_int64(parser)))


_READERS: dict[Any, Callable[[AttrParser], Any]] = {
    Dimensions: parse_dimensions,
    int: parse_int64,
    bool: lambda parser: parser.parse_boolean(),
    TypeAttribute: lambda parser: parser.parse_type(),
}


@cache
def _readers(record: type[DataclassInstance]) -> Mapping[str, Callable[[AttrParser], Any]]:
    return {name: _READERS[kind] for name, kind in get_type_hints(record).items()}


def parse_struct(parser: AttrParser, record: type[RecordT]) -> RecordT:
    """`name = value, …>`, entries in any order, defaults may be omitted; a trailing comma is allowed."""
    readers = _readers(record)
    values: dict[str, Any] = {}
    while parser.parse_optional_punctuation(">") is None:
        start = parser.pos
        name = parser.parse_optional_identifier()
        if name is None or name not in readers:
            parser.raise_error(f"expected one of the entries {', '.join(readers)}", start)
        if name in values:
            parser.raise_error(f"entry {name} is given twice", start, parser.pos)
        parser.parse_punctuation("=")
        values[name] = readers[name](parser)
        if parser.parse_optional_punctuation(",") is None:
            parser.parse_punctuation(">")
            break
    return record(**values)


class RecordAttribute(Data[RecordT], Generic[RecordT]):
    """`<name = [0, 1], other = 2>`: the fields of a dataclass by name, without those at their default."""

    RECORD: ClassVar[type[Any]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RecordT:
        parser.parse_punctuation("<")
        return parse_struct(parser, cls.RECORD)

    def print_parameter(self, printer: Printer) -> None:
        entries = [(field, getattr(self.data, field.name)) for field in fields(self.data)]
        shown = [(field.name, value) for field, value in entries if value != field.default]
        with printer.in_angle_brackets():
            printer.print_list(shown, lambda entry: _print_entry(printer, *entry))


class OrderedRecordAttribute(RecordAttribute[RecordT], Generic[RecordT]):
    """A record with all its entries, in order."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RecordT:
        values: list[Any] = []
        with parser.in_angle_brackets():
            for name, read in _readers(cls.RECORD).items():
                if values:
                    parser.parse_punctuation(",")
                parser.parse_keyword(name)
                parser.parse_punctuation("=")
                values.append(read(parser))
        return cls.RECORD(*values)


def _print_entry(printer: Printer, name: str, value: Dimensions | bool | int | TypeAttribute) -> None:
    printer.print_string(f"{name} = ")
    if isinstance(value, Attribute):
        printer.print_attribute(value)
    elif isinstance(value, tuple):
        printer.print_string(str(list(value)))
    else:
        printer.print_string(str(value).lower())
