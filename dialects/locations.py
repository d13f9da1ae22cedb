"""Source locations: ranges, which xDSL does not have, and the position that a location names first.

JAX writes `loc("model.py":37:27 to :49)`. xDSL admits only its own location classes inside names, call sites and
fusions, so a range is a `FusedLoc` of its start with the end as metadata; printers that do not know ranges still print
valid MLIR, `fused<"to 37:49">["model.py":37:27]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

_PLAIN = re.compile(r"[ !#-\[\]-~]*")


@irdl_attr_definition
class RangeEnd(ParametrizedAttribute, BuiltinAttribute):
    """Where a range of the source ends, line and column; metadata of the `FusedLoc` that stands for the range."""

    name = "recompute.range_end"

    line: IntAttr
    column: IntAttr

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(f'"to {self.line.data}:{self.column.data}"')


def file_range(file: str, start: tuple[int, int], end: tuple[int, int]) -> LocationAttr:
    """From line and column to line and column of a file; a plain position if both are one."""
    position = FileLineColLoc(StringAttr(file), IntAttr(start[0]), IntAttr(start[1]))
    return position if start == end else FusedLoc((position,), RangeEnd(IntAttr(end[0]), IntAttr(end[1])))


def source_position(location: Attribute) -> tuple[str, int, int] | None:
    """File, line and column of the first position that the location names, the callee's before the caller's.

    None if it names none.
    """
    if isinstance(location, FileLineColLoc):
        return location.filename.data, location.line.data, location.column.data
    for part in _parts(location):
        if (position := source_position(part)) is not None:
            return position
    return None


def _parts(location: Attribute) -> tuple[Attribute, ...]:
    match location:
        case NameLoc():
            return (location.location,)
        case CallSiteLoc():
            return location.callee, location.caller
        case FusedLoc(locations=ArrayAttr() as locations):
            return locations.data
        case _:
            return ()


def location_text(location: Attribute, part: Callable[[Attribute], str] | None = None) -> str:
    """What stands between `loc(` and `)`; `part` spells the locations that it is made of, in full if not given."""
    part = part or location_text
    match location:
        case FileLineColLoc():
            return f"{_literal(location.filename)}:{location.line.data}:{location.column.data}"
        case NameLoc(location=NoneAttr()):
            return _literal(location.desc)
        case NameLoc():
            return f"{_literal(location.desc)}({part(location.location)})"
        case CallSiteLoc():
            return f"callsite({part(location.callee)} at {part(location.caller)})"
        case FusedLoc(locations=ArrayAttr(data=[FileLineColLoc() as start]), metadata=RangeEnd() as end):
            line = "" if end.line == start.line else end.line.data
            return f"{location_text(start)} to {line}:{end.column.data}"
        case FusedLoc():
            metadata = "" if isinstance(location.metadata, NoneAttr) else f"<{location.metadata}>"
            return f"fused{metadata}[{', '.join(part(one) for one in _parts(location))}]"
        case _:
            return "unknown"


def is_plain(text: str) -> bool:
    """Whether a string is written as it is, without escapes."""
    return _PLAIN.fullmatch(text) is not None


def _literal(string: StringAttr) -> str:
    return f'"{string.data}"' if is_plain(string.data) else str(string)


@runtime_checkable
class KnowsPosition(Protocol):
    """A parser that can say where the operation that it is reading stands in the text."""

    def operation_location(self) -> LocationAttr: ...


def trailing_location(parser: AttrParser) -> LocationAttr:
    """The location at the end of an operation, for formats that need it early.

    What is written, otherwise the operation's place in the text if the parser knows it.
    """
    written = parser.parse_optional_location()
    if written is not None:
        return written
    return parser.operation_location() if isinstance(parser, KnowsPosition) else UNKNOWN_LOC
