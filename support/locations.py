"""Source locations: ranges, which xDSL lacks; the traversal of nested locations; and the source position to report.

JAX writes `loc("model.py":37:27 to :49)`. xDSL admits only its own location classes inside names, call sites and
fusions, so a range is stored as a `FusedLoc` of its start with the end as metadata. A printer that does not know ranges
still prints valid MLIR: `fused<"to 37:49">["model.py":37:27]`.

Locations are deeply nested and share parts, so all traversals are iterative and visit each object once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

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
from xdsl.ir import Attribute, BuiltinAttribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

_UNESCAPED = re.compile(r"[ !#-\[\]-~]*")


@irdl_attr_definition
class RangeEnd(ParametrizedAttribute, BuiltinAttribute):
    """The line and column at which a source range ends: metadata of the `FusedLoc` that represents the range."""

    name = "recompute.range_end"

    line: IntAttr
    column: IntAttr

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(f'"to {self.line.data}:{self.column.data}"')


def file_range(file: str, start: tuple[int, int], end: tuple[int, int]) -> LocationAttr:
    """Create the location of a range in a file, or of a position if `start` and `end` are equal.

    `start`, `end`: the first and the last position, as pairs of line and column.
    """
    position = FileLineColLoc(StringAttr(file), IntAttr(start[0]), IntAttr(start[1]))
    return position if start == end else FusedLoc((position,), RangeEnd(IntAttr(end[0]), IntAttr(end[1])))


def source_position(location: Attribute) -> tuple[str, int, int] | None:
    """Return the file, line and column of the innermost user code in a location.

    Positions of callees precede those of their callers. The result is the first position outside installed libraries;
    if all positions are in libraries, it is the first position. The result is None if the location contains no
    position.
    """
    innermost = None
    for part in each_part(location):
        if isinstance(part, FileLineColLoc):
            position = part.filename.data, part.line.data, part.column.data
            if not is_library(position[0]):
                return position
            innermost = innermost or position
    return innermost


def base_name(position: str) -> str:
    """Return a source position without the directory of its file: `model.py:41:9` for `/home/me/model.py:41:9`."""
    return position.rpartition("/")[2]


def names_no_position(location: LocationAttr) -> bool:
    """Return whether the location has no position, because it is unknown or only a name."""
    return not isinstance(location, FileLineColLoc) and not parts_of(location)


TEXT_POSITION = "_text_position"
"""The Python attribute, absent from the IR, that stores the text position of an operation whose location has no
position."""


def keep_text_position(op: Operation, position: tuple[str, int, int]) -> None:
    """Record the text position of a parsed operation, for diagnostics. Clones keep the record."""
    setattr(op, TEXT_POSITION, position)


class TextLine(NamedTuple):
    """The text line from which an operation was parsed.

    Attributes:
        file: The name of the text.
        line: The line number, counted from 1.
        results: The results of the operation as the text names them, such as `%12` or `%a:2`; "" if there are no
            results.
    """

    file: str
    line: int
    results: str


_TEXT_LINE = "_text_line"
"""The Python attribute, absent from the IR, that stores the `TextLine` of an operation."""


def keep_text_line(op: Operation, line: TextLine) -> None:
    """Record the line from which an operation was parsed. Clones do not keep the record."""
    setattr(op, _TEXT_LINE, line)


def text_line_of(op: Operation) -> TextLine | None:
    """Return the line from which the operation was parsed; None if it is not known."""
    return op.__dict__.get(_TEXT_LINE)


def scope_of(op: Operation) -> str:
    """Return the outermost name in the operation's location, such as `jit(f)/jvp(block0)/tanh`; "" if there is no
    name."""
    return next((part.desc.data for part in each_part(op.location) if isinstance(part, NameLoc)), "")


def position_of_operation(op: Operation) -> tuple[str, int, int] | None:
    """Return the file, line and column in the operation's location or, if it contains none, the position in the text
    from which the operation was parsed. Return None if neither is known."""
    return source_position(op.location) or op.__dict__.get(TEXT_POSITION)


def name_without_position(op: Operation) -> str:
    """Return the name in the operation's location if the location is only a name, otherwise ""."""
    location = op.location
    return location.desc.data if isinstance(location, NameLoc) and names_no_position(location) else ""


@lru_cache(maxsize=10_000)
def is_library(file: str) -> bool:
    """Return whether the file belongs to an installed package, or to this project's frontends."""
    return any(folder in file for folder in _LIBRARIES) or file.startswith(_FRONTENDS)


_LIBRARIES = ("/site-packages/", "/dist-packages/", "\\site-packages\\", "<frozen ")
_FRONTENDS = str(Path(__file__).resolve().parents[1] / "frontends")


def parts_of(location: Attribute) -> tuple[Attribute, ...]:
    """Return the locations directly inside a location: the child of a name, callee and caller, or the fused
    locations."""
    if type(location) is NameLoc:
        # Nearly every location is a name, so names are tested first, and by class: patterns are slow for xDSL's
        # classes.
        child = location.location
        return () if type(child) in (NoneAttr, UnknownLoc) else (child,)
    match location:
        case CallSiteLoc():
            return location.callee, location.caller
        case FusedLoc(locations=ArrayAttr() as locations):
            return locations.data
        case _:
            return ()


def each_part(location: Attribute) -> Iterator[Attribute]:
    """Yield the location and all locations nested in it, in the order of the text, each object once.

    The traversal is iterative, because call stacks in locations are deeper than Python's recursion limit.
    """
    seen, ahead = set[int](), [location]
    while ahead:
        part = ahead.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            ahead.extend(reversed(parts_of(part)))


def parts_first(location: Attribute, seen: Container[int]) -> Iterator[Attribute]:
    """Yield the location and all locations nested in it in post-order, except locations with an id in `seen`.

    The caller must add the id of each location to `seen` before it requests the next location.
    """
    ahead = [location]
    while ahead:
        missing = [part for part in parts_of(ahead[-1]) if id(part) not in seen]
        ahead.extend(reversed(missing))
        if not missing and id(part := ahead.pop()) not in seen:
            yield part


def key_of_location(location: Attribute, key_of_part: Callable[[Attribute], int]) -> tuple[object, ...]:
    """Return a key that is the same for structurally equal locations.

    `key_of_part`: returns a number for each nested location, so that the key is computed without recursion, unlike
    xDSL's hash.
    """
    if type(location) is NameLoc:
        return NameLoc, location.desc.data, *map(key_of_part, parts_of(location))
    match location:
        case FileLineColLoc():
            return FileLineColLoc, location.filename.data, location.line.data, location.column.data
        case CallSiteLoc():
            return CallSiteLoc, *map(key_of_part, parts_of(location))
        case FusedLoc(locations=ArrayAttr(data=[FileLineColLoc() as start]), metadata=RangeEnd() as end):
            return FusedLoc, end, *key_of_location(start, key_of_part)
        case FusedLoc():
            return FusedLoc, location.metadata, *map(key_of_part, parts_of(location))
        case _:
            return (location,)


class LocationNumbers:
    """Assigns a number to each location; structurally equal locations get the same number.

    Numbers are cached by the ids of locations, so the locations are kept alive.
    """

    def __init__(self) -> None:
        self._number_of_key: dict[tuple[object, ...], int] = {}
        self._numbers: dict[int, int] = {}
        self._held: list[Attribute] = []

    def number_of(self, location: Attribute) -> int:
        """Return the number of the location."""
        if (number := self._numbers.get(id(location))) is not None:
            return number
        for part in parts_first(location, self._numbers):
            key = key_of_location(part, lambda inner: self._numbers[id(inner)])
            self._numbers[id(part)] = self._number_of_key.setdefault(key, len(self._number_of_key))
            self._held.append(part)
        return self._numbers[id(location)]


def location_text(location: Attribute) -> str:
    """Return the text of the location between `loc(` and `)`, without aliases."""
    text = list[str]()
    ahead = list[str | Attribute]([location])
    while ahead:
        piece = ahead.pop()
        if isinstance(piece, str):
            text.append(piece)
        else:
            ahead.extend(reversed(location_pieces(piece)))
    return "".join(text)


def location_pieces(location: Attribute) -> list[str | Attribute]:
    """Return the text between `loc(` and `)` as pieces: strings, and nested locations that are still to be printed."""
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
    """Return whether MLIR prints the string without escapes."""
    return _UNESCAPED.fullmatch(text) is not None


def _literal(string: StringAttr) -> str:
    return f'"{string.data}"' if is_plain(string.data) else str(string)


@runtime_checkable
class KnowsPosition(Protocol):
    """A parser that records where in the text the current operation begins."""

    def operation_location(self) -> LocationAttr:
        """Return the position of the current operation."""
        ...


def trailing_location(parser: AttrParser) -> LocationAttr:
    """Parse the location at the end of an operation, for formats that need it before the operation is complete.

    If the text contains no location, return the operation's position in the text or, if the parser does not know it,
    `loc(unknown)`.
    """

    written = parser.parse_optional_location()
    if written is not None:
        return written
    return parser.operation_location() if isinstance(parser, KnowsPosition) else UNKNOWN_LOC
