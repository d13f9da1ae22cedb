"""Aliases of attributes, types and locations, and MLIR's syntax of locations.

Aliases `#map = affine_map<…>` and `!t = tensor<4xf32>` are defined between the outermost operations, each once, and are
known from there on. Only aliases of locations, which MLIR writes at the end (`#loc7 = loc("jit(step)/tanh")`
for `loc(#loc7)`), are known before. So all definitions are found by their text and read first, in their order; the
parser later steps over exactly that text. What aliases expand to is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    DictionaryAttr,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.parser import Parser, ParserState
from xdsl.utils.lexer import Input, Position
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..support.locations import file_range, key_of_location, location_pieces, parts_first
from .lexer import Lexer
from .printer import attribute_text

# All repetitions are possessive: a group that can give back what it took keeps a state for each repetition.
_STRING = r'"(?:[^"\\\n]++|\\.)*+"'
_VALUE = r"%[\w$.-]+(?:#[0-9]+)?"
_NAME = r"[#!](?:[0-9]+|[a-zA-Z$._-][\w$.-]*)"
_GAP = r"(?:[ \t\r\n]++|//[^\n]*+(?:\n|\Z))*+"
_SKIPPED = re.compile(_GAP)
_DEFINITION = re.compile(rf"{_STRING}|{_VALUE}|//[^\n]*+|({_NAME}){_GAP}=(?!=){_GAP}", re.ASCII)
_IN_BODY = re.compile(rf"{_STRING}|{_VALUE}|(//)|\b(dense_resource){_GAP}<|({_NAME})(?![\w$.-]|{_GAP}<)", re.ASCII)

_RELATION = re.compile(rf"{_STRING}|([<>]=)")
MOST_NESTED = 100
"""How deeply the value of an alias may be nested; what Python's recursion can print and compare."""
MOST_EXPANDED = 2**22
"""Characters that aliases may stand for in any module, beside `MOST_TIMES` as many as it has."""
MOST_TIMES = 16

OF_NUMBERS = {"stablehlo.channel_handle", "stablehlo.bounds"}
"""Attributes of known dialects that stay text here, and whose members are numbers: no alias stands for a number."""

_COMMENT = "a comment cannot be told from the text of an attribute of an unknown dialect"
_EMPTY = "an empty body is not told from none: leave it out"
_BRACKET = "a '>=' cannot be told from the end of an attribute of an unknown dialect"
_RESOURCE = "an attribute of an unknown dialect would lose the content of its resource"


@dataclass
class Definition:
    """Where the name and the value of an alias stand, and after it was read, what it is and where the next token is."""

    start: Position
    value: Position
    end: Position = -1
    attribute: Attribute | None = None
    expanded: int = 0
    """Characters of the value with all aliases in it written out."""


class AliasParser(Parser):
    """xDSL's parser with the aliases of MLIR, also inside of attributes of dialects that nobody knows."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, "", name)
        self._parser_state = ParserState(Lexer(Input(text, name)))
        self._definitions: dict[str, Definition] = {}
        self._most_expanded = MOST_EXPANDED + MOST_TIMES * len(text)
        self._expanded = 0
        """Characters that the aliases read so far stand for: where one stands in another twice, they double."""
        self._value_start: Position = -1
        """Where the value begins that is being defined."""
        self._depths: dict[int, int] = {}
        self._lengths: dict[int, int] = {}
        """Characters of each location, by identity: the definitions hold them."""
        for match in _DEFINITION.finditer(text):
            if match[1]:
                self._declare(match[1], Definition(match.start(), match.end()))

    def _declare(self, alias: str, definition: Definition) -> None:
        end = definition.start + len(alias)
        if alias in self._definitions:
            self.raise_error(f"re-declaration of alias '{alias}'", definition.start, end)
        if "." in alias:
            self.raise_error(f"'{alias}' has a dot, as only names of dialects have", definition.start, end)
        self._definitions[alias] = definition

    def read_definitions(self) -> None:
        """Read all definitions, each with the aliases that are defined before it."""
        for alias, definition in self._definitions.items():
            before = self._expanded
            if (value := self.read_at_once(definition)) is None:
                self._value_start = definition.value
                self._resume_from(definition.value)
                value = self.parse_type() if alias.startswith("!") else self.parse_attribute()
                definition.end = self.pos
            definition.attribute = self.attribute_aliases[alias] = value
            own = self.lexer.input.content[definition.value : definition.end].rstrip()
            definition.expanded = len(own) + self._expanded - before
            if not isinstance(value, LocationAttr) and self._expanded > before and self._depth(value) > MOST_NESTED:
                end = definition.start + len(alias)
                self.raise_error(f"alias '{alias}' is nested more than {MOST_NESTED} deep", definition.start, end)
        self.attribute_aliases.clear()
        self._value_start = -1
        self._resume_from(0)

    def _depth(self, attribute: Attribute) -> int:
        """How deeply attributes are nested in the attribute. The values of aliases, which are kept, are known by id."""
        if (known := self._depths.get(id(attribute))) is None:
            match attribute:
                case ArrayAttr():
                    parts = list[object](attribute.data)
                case DictionaryAttr():
                    parts = list[object](attribute.data.values())
                case ParametrizedAttribute():
                    parts = list[object](attribute.parameters)
                case _:
                    parts = list[object]()
            inside = (self._depth(part) for part in parts if isinstance(part, Attribute))
            known = self._depths[id(attribute)] = 1 + max(inside, default=0)
        return known

    def _expand(self, alias: str, start: Position) -> None:
        """Count what the alias stands for, before it is written out."""
        attribute = self.attribute_aliases[alias]
        end = start + len(alias)
        if isinstance(attribute, LocationAttr):
            self._count_location(attribute, start, end)
        else:
            self._count_expanded(self._definitions[alias].expanded - len(alias), start, end)

    def _count_expanded(self, characters: int, start: Position, end: Position) -> None:
        self._expanded += characters
        if self._expanded > self._most_expanded:
            self.raise_error(
                f"aliases stand for more than {self._most_expanded} characters, the most for a text of "
                f"{len(self.lexer.input.content)}: use fewer aliases in the definitions of aliases",
                start,
                end,
            )

    def _parse_optional_builtin_attr(self) -> Attribute | None:
        start = self.pos
        attribute = super()._parse_optional_builtin_attr()
        if isinstance(attribute, LocationAttr):
            self._count_location(attribute, start, self.pos)
        return attribute

    def _count_location(self, location: LocationAttr, start: Position, end: Position) -> None:
        """In attributes, locations are printed in full; where one is defined they are not."""
        if start == self._value_start:
            return
        for part in parts_first(location, self._lengths):
            own = location_pieces(part)
            lengths = (len(piece) if isinstance(piece, str) else self._lengths[id(piece)] for piece in own)
            self._lengths[id(part)] = min(sum(lengths), self._most_expanded + 1)
        self._count_expanded(self._lengths[id(location)], start, end)

    def read_at_once(self, definition: Definition) -> Attribute | None:
        """What need not be parsed token by token, and then the end of the definition is noted; else None."""
        return None

    def _parse_alias_def(self) -> None:
        alias, start = self._current_token.text, self.pos
        definition = self._definitions.get(alias)
        if definition is None or definition.start != start or definition.attribute is None:
            self.raise_error("expected an operation, or the definition of an alias, '#name = …'")
        self.attribute_aliases[alias] = definition.attribute
        self._resume_from(definition.end)

    def check_definitions(self) -> None:
        """Every definition was met where definitions may stand. Otherwise an error points to it."""
        for alias, definition in self._definitions.items():
            if alias not in self.attribute_aliases:
                start = definition.start
                self.raise_error("an alias is defined between the outermost operations", start, start + len(alias))

    def is_location(self, alias: str) -> bool:
        definition = self._definitions.get(alias)
        return definition is not None and isinstance(definition.attribute, LocationAttr)

    def aliased_location(self, alias: str) -> LocationAttr:
        """The location of this name, wherever it is defined."""
        definition = self._definitions.get(alias)
        if definition is None or definition.attribute is None:
            self.raise_error(f"undefined location alias '{alias}'")
        if not isinstance(definition.attribute, LocationAttr):
            self.raise_error(f"'{alias}' is not a location")
        return definition.attribute

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: bool) -> Any:
        """What follows the name of an alias or of an attribute of a dialect."""
        alias = f"{'!' if is_type else '#'}{attr_or_dialect_name}"
        has_body = self._current_token.kind == MLIRTokenKind.LESS and self._follows_directly(alias)
        if "." not in alias and not has_body:
            return self._aliased(alias)
        if self._current_token.kind == MLIRTokenKind.LESS and not has_body:
            self.raise_error(f"the '<' of '{alias}' stands directly behind the name")
        start = self.pos
        found = super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        if has_body and self.lexer.input.content.find("//", start, self.pos) >= 0:
            self._check_comments(start)
        return found

    def _check_comments(self, start: Position) -> None:
        """MLIR finds the end of a body by its brackets, those in comments included."""
        end = self._raw_scan_balanced(start + len("<")) + len(">")
        if self._position_after_gap(end) != self.pos:
            self.raise_error("a comment in the body of an attribute has a bracket", start, self.pos)

    def _position_after_gap(self, position: Position) -> Position:
        match = _SKIPPED.match(self.lexer.input.content, position)
        return position if match is None else match.end()

    def _follows_directly(self, name: str) -> bool:
        """Whether nothing stands between the name that was read last and the current token."""
        return self.lexer.input.content.startswith(name, self.pos - len(name))

    def _aliased(self, alias: str) -> Attribute:
        start = self.lexer.input.content.rindex(alias, 0, self.pos)
        if alias not in self.attribute_aliases:
            self.raise_error(f"undefined symbol alias '{alias}'", start, start + len(alias))
        self._expand(alias, start)
        return self.attribute_aliases[alias]

    def _parse_dialect_type_or_attribute_body(
        self, attr_name: str, is_type: bool, is_opaque: bool, starting_opaque_pos: Position | None
    ) -> UnregisteredAttr | ParametrizedAttribute | Data[Any]:
        start = self.pos + len("<") if starting_opaque_pos is None else starting_opaque_pos
        found = super()._parse_dialect_type_or_attribute_body(attr_name, is_type, is_opaque, starting_opaque_pos)
        if isinstance(found, UnregisteredAttr) and _IN_BODY.search(found.value.data):
            body = StringAttr(self._without_aliases(found.value.data, start, found.attr_name.data in OF_NUMBERS))
            return found.new([found.attr_name, found.is_type, found.is_opaque, body])
        if isinstance(found, UnregisteredAttr) and self.lexer.input.content.startswith("<>", start - len("<")):
            self.raise_error(_EMPTY, start - len("<"), start + len(">"))
        return found

    def _without_aliases(self, body: str, start: Position, of_numbers: bool) -> str:
        """The body of an attribute that stays text, with what its aliases stand for: the output does not have them."""

        def spelled(match: re.Match[str]) -> str:
            comment, resource, alias = match.groups()
            if not (comment or resource or alias) or "." in (alias or ""):
                return match[0]
            if alias and of_numbers:
                self.raise_error("expected a number", start + match.start(), start + match.end())
            if alias in self.attribute_aliases:
                self._expand(alias, start + match.start())
            text = attribute_text(self.attribute_aliases[alias]) if alias in self.attribute_aliases else None
            if text is not None and not any(found[1] for found in _RELATION.finditer(text)):
                return (" " if body[match.start() - 1 : match.start()].isalnum() else "") + text
            undefined = _BRACKET if text else f"undefined symbol alias '{alias}'"
            wrong = undefined if alias else _COMMENT if comment else _RESOURCE
            self.raise_error(wrong, start + match.start(), start + match.end())

        return _IN_BODY.sub(spelled, body)


_SPACE = r"[ \t\r\n]*"
_USE = re.compile(rf"loc{_SPACE}\((?:{_SPACE}(#[\w$.-]+){_SPACE}\))?", re.ASCII)
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
