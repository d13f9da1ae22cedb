"""xDSL's parser, extended to accept all forms of MLIR's locations. Equal locations become one object."""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.dialects.builtin import CallSiteLoc, LocationAttr, NameLoc, StringAttr
from xdsl.ir import Attribute
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..support.locations import key_of_location
from .aliases import AliasParser, Definition
from .syntax.location_syntax import parse_location

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
        """Return the unique object that equals this location. The parts of the location must already be unique
        objects."""
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
            # Nearly every location has this form. One lookup replaces the parsing of four tokens.
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
