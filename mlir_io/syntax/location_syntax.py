"""The complete syntax of MLIR's locations, for this project's parser and for xDSL's parser, which supports only a part
of it.

unknown
"model.py":37:27 to :49
"jit(step)/tanh"(…)
callsite(… at …)
fused<metadata>[…, …]
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FusedLoc, LocationAttr, NameLoc, NoneAttr, StringAttr
from xdsl.parser import AttrParser

from ...support.locations import file_range

MAX_POSITION = 2**32 - 1
"""The maximum line number and column number of a location in MLIR."""


def parse_location(parser: AttrParser, parse_nested: Callable[[], LocationAttr]) -> LocationAttr:
    """Parse a location that is not an alias, without the surrounding `loc(` and `)`.

    Args:
        parser: The parser, at the first token of the location.
        parse_nested: Parses a nested location, which may be an alias.
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
