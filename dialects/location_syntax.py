"""Reads MLIR's locations: ranges, fusions with metadata, and aliases that are defined before or after their use.

MLIR writes `loc(#loc7)` at an operation and `#loc7 = loc("jit(step)/tanh"(#loc3))` at the end of the file. The
definitions are found before parsing, by their text; each is read once and the location object is shared.
"""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FusedLoc, LocationAttr, NameLoc, NoneAttr, StringAttr
from xdsl.parser import Parser, ParserState
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRTokenKind

from .lexer import Lexer
from .locations import file_range

_STRING_OR_COMMENT = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*'
_DEFINITION = re.compile(_STRING_OR_COMMENT + r"|(#[\w$.-]+)\s*=\s*(?=loc\s*\()")
_USE = re.compile(r"loc\s*\((?:\s*(#[\w$.-]+)\s*\))?")


class LocationParser(Parser):
    """xDSL's parser with all of MLIR's locations."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, "", name)
        self._parser_state = ParserState(Lexer(Input(text, name)))
        self._definitions: dict[str, int] = {}
        """Where the location of an alias stands in the text."""
        self._ends: dict[str, int] = {}
        """Where the definition of an alias that has been read ends. Those being read have no end yet."""
        self._shared: dict[LocationAttr, LocationAttr] = {}
        self._end_of_location = -1
        for match in _DEFINITION.finditer(text):
            if match[1] in self._definitions:
                self.raise_error(f"re-declaration of alias '{match[1]}'", match.start(), match.end())
            if match[1]:
                self._definitions[match[1]] = match.end()

    def resolve_aliases(self) -> None:
        """Read all definitions, in the order of the text: one that is built on earlier ones then needs no recursion."""
        for alias in self._definitions:
            self._aliased(alias)

    def _aliased(self, alias: str) -> LocationAttr:
        location = self.attribute_aliases.get(alias)
        if location is None:
            location = self._read_definition(alias)
        if not isinstance(location, LocationAttr):
            self.raise_error(f"'{alias}' is not a location")
        return location

    def _read_definition(self, alias: str) -> LocationAttr:
        if alias not in self._definitions:
            self.raise_error(f"undefined location alias '{alias}'")
        if alias in self._ends:
            self.raise_error(f"location alias '{alias}' is defined by itself")
        self._ends[alias] = -1
        position, token, end_of_location = self.lexer.pos, self._current_token, self._end_of_location
        self._resume_from(self._definitions[alias])
        location = self.parse_optional_location()
        assert location is not None, "a definition was found by the location that follows"
        self._ends[alias] = self._end_of_location
        self.lexer.pos, self._parser_state.current_token, self._end_of_location = position, token, end_of_location
        self.attribute_aliases[alias] = location
        return location

    def _parse_alias_def(self) -> None:
        alias = self._current_token.text
        if alias not in self._definitions:
            return super()._parse_alias_def()
        self._aliased(alias)
        self._resume_from(self._ends[alias])

    def parse_optional_location(self) -> LocationAttr | None:
        match = _USE.match(self.lexer.input.content, self.pos)
        if match is None:
            return None
        if match[1]:
            # Nearly every location of a real program: one look-up instead of four tokens.
            location = self._aliased(match[1])
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
            return self._aliased(alias.text)
        text = self._parse_optional_text()
        location = self._parse_composed() if text is None else self._parse_after_text(text)
        return self._shared.setdefault(location, location)

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
            end_line = self.parse_optional_integer(False, False)
            self.parse_punctuation(":")
            end = (line if end_line is None else end_line), self._parse_natural()
        return file_range(text, (line, column), end)

    def _parse_natural(self) -> int:
        return self.parse_integer(allow_boolean=False, allow_negative=False)
