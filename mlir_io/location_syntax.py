"""The complete syntax of MLIR's locations, for this project's parser and for xDSL's parser, which supports only a part
of it.

unknown
"model.py":37:27 to :49
"jit(step)/tanh"(…)
callsite(… at …)
fused<metadata>[…, …]
"""

from __future__ import annotations

import re
from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FusedLoc, LocationAttr, NameLoc, NoneAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..support.locations import file_range, key_of_location
from .aliases import AliasParser, Definition

MAX_POSITION = 2**32 - 1
"""The maximum line number and column number of a location in MLIR."""


def parse_location(parser: AttrParser, parse_nested: Callable[[], LocationAttr]) -> LocationAttr:
    """Parse a location that is not an alias, without the surrounding `loc(` and `)`.

    Args:
        parser: The parser, at the first token of the location.
        parse_nested: Parses a nested location. It may be an alias.
    """
    text = _optional_text(parser)
    return _parse_location(parser, parse_nested) if text is None else _after_text(parser, text, parse_nested)


def _optional_text(parser: AttrParser) -> str | None:
    """Parse an optional string literal as text. xDSL returns a literal with escaped UTF-8 as bytes."""
    start = parser.pos
    raw = parser.parse_optional_bytes_literal()
    if raw is None:
        return parser.parse_optional_str_literal()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        parser.raise_error("a string in a location must be valid UTF-8", start, parser.pos)


def _parse_location(parser: AttrParser, parse_nested: Callable[[], LocationAttr]) -> LocationAttr:
    start = parser.pos
    match parser.parse_optional_identifier():
        case "unknown":
            return UNKNOWN_LOC
        case "callsite":
            with parser.in_parens():
                callee = parse_nested()
                parser.parse_keyword("at")
                return CallSiteLoc(callee, parse_nested())
        case "fused":
            metadata = NoneAttr()
            if parser.parse_optional_punctuation("<") is not None:
                metadata = parser.parse_attribute()
                parser.parse_punctuation(">")
            parts = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_nested)
            return FusedLoc(tuple(parts), metadata)
        case _:
            parser.raise_error("expected a location: 'unknown', a string, 'callsite(…)' or 'fused[…]'", start)


def _after_text(parser: AttrParser, text: str, parse_nested: Callable[[], LocationAttr]) -> LocationAttr:
    """Parse the part of a location that follows its string: `:line:column`, a range, or a child location."""
    if parser.parse_optional_punctuation("(") is not None:
        named = parse_nested()
        parser.parse_punctuation(")")
        return NameLoc(StringAttr(text), named)
    if parser.parse_optional_punctuation(":") is None:
        return NameLoc(StringAttr(text), NoneAttr())
    line = _natural(parser)
    column = _natural(parser) if parser.parse_optional_punctuation(":") is not None else 0
    end = line, column
    if parser.parse_optional_keyword("to") is not None:
        is_same_line = parser.parse_optional_punctuation(":") is not None
        end_line = line if is_same_line else _natural(parser)
        if not is_same_line:
            parser.parse_punctuation(":")
        end = end_line, _natural(parser)
    return file_range(text, (line, column), end)


def _natural(parser: AttrParser) -> int:
    start = parser.pos
    number = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if number > MAX_POSITION:
        parser.raise_error(f"the line or column {number} exceeds the maximum, {MAX_POSITION}", start, parser.pos)
    return number


_SPACE = r"[ \t\r\n]*"
_USE = re.compile(rf"loc{_SPACE}\((?:{_SPACE}(#[\w$.-]+){_SPACE}\))?", re.ASCII)
_SIMPLE = re.compile(
    r'loc\((?:"([^"\\\n\v\f]*)"\((#[\w$-]+)\)|callsite\((#[\w$-]+) at (#[\w$-]+)\))\)[ \t\r\n]*(?=#|\Z)', re.ASCII
)
"""The form of nearly every definition: a named location or a call site, followed by the next definition."""


class LocationParser(AliasParser):
    """xDSL's parser, extended to accept all forms of MLIR locations."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._end_of_location = -1
        self._shared: dict[tuple[object, ...], LocationAttr] = {}
        """The unique object for each location, by a key with the ids of its parts."""

    def read_at_once(self, definition: Definition) -> Attribute | None:
        match = _SIMPLE.match(self.lexer.input.content, definition.value)
        if match is None or not all(map(self.is_location, filter(None, match.groups()[1:]))):
            return None
        text, named, callee, caller = match.groups()
        parts = [self.aliased_location(alias) for alias in (named, callee, caller) if alias]
        definition.end = match.end()
        return self._share(CallSiteLoc(*parts) if text is None else NameLoc(StringAttr(text), *parts))

    def _share(self, location: LocationAttr) -> LocationAttr:
        """Return the unique object that equals this location. Its parts must already be unique objects."""
        return self._shared.setdefault(key_of_location(location, id), location)

    def named_location(self, text: str, alias: str) -> LocationAttr:
        """Return the location `"text"(#alias)`, or `#alias` itself if there is no text."""
        named = self.aliased_location(alias)
        return self._share(NameLoc(StringAttr(text), named)) if text else named

    def parse_optional_location(self) -> LocationAttr | None:
        match = _USE.match(self.lexer.input.content, self.pos)
        if match is None:
            return None
        if match[1]:
            # Nearly every location has this form. One lookup saves the parsing of four tokens.
            location = self.aliased_location(match[1])
            self._resume_from(match.end())
        else:
            self._resume_from(match.end())
            location = self._parse_location()
            self.parse_punctuation(")")
        self._end_of_location = self.pos
        return location

    def _parse_location(self) -> LocationAttr:
        alias = self._parse_optional_token(MLIRTokenKind.HASH_IDENT)
        if alias is not None:
            return self.aliased_location(alias.text)
        return self._share(parse_location(self, self._parse_location))
