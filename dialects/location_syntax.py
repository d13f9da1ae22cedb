"""Reads MLIR's locations: ranges, fusions with metadata, and aliases that are defined before or after their use.

MLIR writes `loc(#loc7)` at an operation and `#loc7 = loc("jit(step)/tanh"(#loc3))` at the end of the file.
"""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FusedLoc, LocationAttr, NameLoc, NoneAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from .aliases import AliasParser, Definition
from .locations import file_range, key_of_location

_GAP = r"[ \t\r\n]*"
_USE = re.compile(rf"loc{_GAP}\((?:{_GAP}(#[\w$.-]+){_GAP}\))?", re.ASCII)
_SIMPLE = re.compile(
    r'loc\((?:"([^"\\\n\v\f]*)"\((#[\w$-]+)\)|callsite\((#[\w$-]+) at (#[\w$-]+)\))\)[ \t\r\n]*(?=#|\Z)', re.ASCII
)
"""Nearly every definition: a name of another location, or one called from another; and then the next definition."""
_MOST = 2**32 - 1
"""The last line and the last column that a location of MLIR can name."""


class LocationParser(AliasParser):
    """xDSL's parser with all of MLIR's locations."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._end_of_location = -1
        self._shared: dict[tuple[object, ...], LocationAttr] = {}
        """Each location once, by the identity of what it is made of."""

    def read_at_once(self, definition: Definition) -> Attribute | None:
        found = _SIMPLE.match(self.lexer.input.content, definition.value)
        if found is None or not all(map(self.is_location, filter(None, found.groups()[1:]))):
            return None
        text, named, callee, caller = found.groups()
        parts = [self.aliased_location(alias) for alias in (named, callee, caller) if alias]
        definition.end = found.end()
        return self._share(CallSiteLoc(*parts) if text is None else NameLoc(StringAttr(text), *parts))

    def _share(self, location: LocationAttr) -> LocationAttr:
        """The location that is equal to this one and was read first; the parts are shared already."""
        return self._shared.setdefault(key_of_location(location, id), location)

    def parse_optional_location(self) -> LocationAttr | None:
        match = _USE.match(self.lexer.input.content, self.pos)
        if match is None:
            return None
        if match[1]:
            # Nearly every location of a real program: one look-up instead of four tokens.
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
        text = self._parse_optional_text()
        location = self._parse_composed() if text is None else self._parse_after_text(text)
        return self._share(location)

    def _parse_optional_text(self) -> str | None:
        """A string; xDSL takes one with escaped UTF-8 for bytes."""
        start = self.pos
        raw = self.parse_optional_bytes_literal()
        if raw is None:
            return self.parse_optional_str_literal()
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.raise_error("a name in a location is UTF-8", start, self.pos)

    def _parse_composed(self) -> LocationAttr:
        start = self.pos
        match self.parse_optional_identifier():
            case "unknown":
                return UNKNOWN_LOC
            case "callsite":
                with self.in_parens():
                    callee = self._parse_location()
                    self.parse_keyword("at")
                    return CallSiteLoc(callee, self._parse_location())
            case "fused":
                metadata = NoneAttr()
                if self.parse_optional_punctuation("<") is not None:
                    metadata = self.parse_attribute()
                    self.parse_punctuation(">")
                parts = self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)
                return FusedLoc(tuple(parts), metadata)
            case _:
                self.raise_error("expected a location", start)

    def _parse_after_text(self, text: str) -> LocationAttr:
        """After the name of a file or of anything else: `:line:column`, a range, or the location that is named."""
        if self.parse_optional_punctuation("(") is not None:
            named = self._parse_location()
            self.parse_punctuation(")")
            return NameLoc(StringAttr(text), named)
        if self.parse_optional_punctuation(":") is None:
            return NameLoc(StringAttr(text), NoneAttr())
        line = self._parse_natural()
        column = self._parse_natural() if self.parse_optional_punctuation(":") is not None else 0
        end = line, column
        if self.parse_optional_keyword("to") is not None:
            end_line = line if self._current_token.kind == MLIRTokenKind.COLON else self._parse_natural()
            self.parse_punctuation(":")
            end = end_line, self._parse_natural()
        return file_range(text, (line, column), end)

    def _parse_natural(self) -> int:
        start = self.pos
        number = self.parse_integer(allow_boolean=False, allow_negative=False)
        if number > _MOST:
            self.raise_error(f"a line or column of a location is at most {_MOST}", start, self.pos)
        return number
