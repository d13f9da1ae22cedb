"""Source locations: ranges, which xDSL does not have, and the position that a location names first.

JAX writes `loc("model.py":37:27 to :49)`. xDSL admits only its own location classes inside names, call sites and
fusions, so a range is a `FusedLoc` of its start with the end as metadata; printers that do not know ranges still print
valid MLIR, `fused<"to 37:49">["model.py":37:27]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from pathlib import Path
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
    UnknownLoc,
)
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

_PLAIN = re.compile(r"[ !#-\[\]-~]*")


@irdl_attr_definition
class RangeEnd(ParametrizedAttribute, BuiltinAttribute):
    """The end of a range of the source, line and column; metadata of the `FusedLoc` that stands for the range."""

    name = "recompute.range_end"

    line: IntAttr
    column: IntAttr

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(f'"to {self.line.data}:{self.column.data}"')


def file_range(file: str, start: tuple[int, int], end: tuple[int, int]) -> LocationAttr:
    """Make the location from one line and column to another of a file; a plain position if both are equal."""
    position = FileLineColLoc(StringAttr(file), IntAttr(start[0]), IntAttr(start[1]))
    return position if start == end else FusedLoc((position,), RangeEnd(IntAttr(end[0]), IntAttr(end[1])))


def source_position(location: Attribute) -> tuple[str, int, int] | None:
    """Find file, line and column of the innermost call in the user's code: the first position, the callee's before the
    caller's, that is not in an installed library; the first one if all are. None if the location names none.
    """
    innermost = None
    for part in each_part(location):
        if isinstance(part, FileLineColLoc):
            position = part.filename.data, part.line.data, part.column.data
            if not is_library(position[0]):
                return position
            innermost = innermost or position
    return innermost


@lru_cache(maxsize=10_000)
def is_library(file: str) -> bool:
    """Return whether the file is part of an installed package, or of the frontends of this one."""
    return any(folder in file for folder in _LIBRARIES) or file.startswith(_FRONTENDS)


_LIBRARIES = ("/site-packages/", "/dist-packages/", "\\site-packages\\", "<frozen ")
_FRONTENDS = str(Path(__file__).resolve().parents[1] / "frontends")


def parts_of(location: Attribute) -> tuple[Attribute, ...]:
    """Return the locations that the location is directly made of."""
    match location:
        case NameLoc(location=NoneAttr() | UnknownLoc()):
            return ()
        case NameLoc():
            return (location.location,)
        case CallSiteLoc():
            return location.callee, location.caller
        case FusedLoc(locations=ArrayAttr() as locations):
            return locations.data
        case _:
            return ()


def each_part(location: Attribute) -> Iterator[Attribute]:
    """Yield the location and all that it is made of, at every depth, each object once, in the order of the text.

    Without recursion: stacks of calls are deeper than Python's, and parts are shared.
    """
    seen, ahead = set[int](), [location]
    while ahead:
        part = ahead.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            ahead.extend(reversed(parts_of(part)))


def parts_first(location: Attribute, seen: Container[int]) -> Iterator[Attribute]:
    """Yield the location and all that it is made of, each after its own parts; none whose id is in `seen`.

    The caller adds the id of each part to `seen` before it takes the next one.
    """
    ahead = [location]
    while ahead:
        missing = [part for part in parts_of(ahead[-1]) if id(part) not in seen]
        ahead.extend(reversed(missing))
        if not missing and id(part := ahead.pop()) not in seen:
            yield part


def key_of_location(location: Attribute, key_of_part: Callable[[Attribute], int]) -> tuple[object, ...]:
    """Return a key that is equal for equal locations, if the keys of their parts are; hashing a nested location would
    recurse."""
    match location:
        case FileLineColLoc():
            return FileLineColLoc, location.filename.data, location.line.data, location.column.data
        case NameLoc():
            return NameLoc, location.desc.data, *map(key_of_part, parts_of(location))
        case CallSiteLoc():
            return CallSiteLoc, *map(key_of_part, parts_of(location))
        case FusedLoc(locations=ArrayAttr(data=[FileLineColLoc() as start]), metadata=RangeEnd() as end):
            return FusedLoc, end, *key_of_location(start, key_of_part)
        case FusedLoc():
            return FusedLoc, location.metadata, *map(key_of_part, parts_of(location))
        case _:
            return (location,)


class LocationNumbers:
    """A number for each location, the same for equal ones. Holds the locations: ids stay theirs."""

    def __init__(self) -> None:
        self._number_of_key: dict[tuple[object, ...], int] = {}
        self._numbers: dict[int, int] = {}
        self._held: list[Attribute] = []

    def of(self, location: Attribute) -> int:
        for part in parts_first(location, self._numbers):
            key = key_of_location(part, lambda inner: self._numbers[id(inner)])
            self._numbers[id(part)] = self._number_of_key.setdefault(key, len(self._number_of_key))
            self._held.append(part)
        return self._numbers[id(location)]


def location_text(location: Attribute) -> str:
    """Return the text between `loc(` and `)`, in full."""
    text, ahead = list[str](), list[str | Attribute]([location])
    while ahead:
        piece = ahead.pop()
        if isinstance(piece, str):
            text.append(piece)
        else:
            ahead.extend(reversed(location_pieces(piece)))
    return "".join(text)


def location_pieces(location: Attribute) -> list[str | Attribute]:
    """Return the pieces between `loc(` and `)`: text, and the nested locations in their places."""
    match location:
        case FileLineColLoc():
            return [f"{_literal(location.filename)}:{location.line.data}:{location.column.data}"]
        case NameLoc(location=NoneAttr() | UnknownLoc()):
            return [_literal(location.desc)]
        case NameLoc():
            return [f"{_literal(location.desc)}(", location.location, ")"]
        case CallSiteLoc():
            return ["callsite(", location.callee, " at ", location.caller, ")"]
        case FusedLoc(locations=ArrayAttr(data=[FileLineColLoc() as start]), metadata=RangeEnd() as end):
            line = "" if end.line == start.line else end.line.data
            return [f"{location_text(start)} to {line}:{end.column.data}"]
        case FusedLoc():
            metadata = "" if isinstance(location.metadata, NoneAttr) else f"<{location.metadata}>"
            commas = [piece for part in parts_of(location) for piece in (", ", part)][1:]
            return [f"fused{metadata}[", *commas, "]"]
        case _:
            return ["unknown"]


def is_plain(text: str) -> bool:
    """Return whether a string is written as it is, without escapes."""
    return _PLAIN.fullmatch(text) is not None


def _literal(string: StringAttr) -> str:
    return f'"{string.data}"' if is_plain(string.data) else str(string)


@runtime_checkable
class KnowsPosition(Protocol):
    """A parser that knows the position of the current operation in the text."""

    def operation_location(self) -> LocationAttr: ...


def trailing_location(parser: AttrParser) -> LocationAttr:
    """Return the location at the end of an operation, for formats that need it early.

    It is the written location, otherwise the operation's position in the text if the parser knows it.
    """
    written = parser.parse_optional_location()
    if written is not None:
        return written
    return parser.operation_location() if isinstance(parser, KnowsPosition) else UNKNOWN_LOC
