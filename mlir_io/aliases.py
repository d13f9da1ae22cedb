"""Aliases of attributes, types and locations.

An alias, such as `#map = affine_map<…>` or `!t = tensor<4xf32>`, is defined once, at the top level of the file, and may
be used only after its definition. Location aliases are an exception: MLIR prints their definitions at the end of the
file (`#loc7 = loc("jit(step)/tanh")` for `loc(#loc7)`), so they may be used earlier. Therefore the parser first finds
and parses all definitions in the text, in order, and skips them later. The total size of expanded aliases is limited,
because the expansion of nested aliases can grow exponentially.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    LocationAttr,
    StringAttr,
    UnregisteredAttr,
)
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.parser import Parser, ParserState
from xdsl.utils.lexer import Input, Position
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..support.locations import location_pieces, parts_first
from .lexer import Lexer
from .printer import EMPTY_BODY, attribute_text

# All repetitions are possessive: for a group that can backtrack, `re` stores a state for each repetition.
_STRING = r'"(?:[^"\\\n]++|\\.)*+"'
_VALUE = r"%[\w$.-]+(?:#[0-9]+)?"
_NAME = r"[#!](?:[0-9]+|[a-zA-Z$._-][\w$.-]*)"
_GAP = r"(?:[ \t\r\n]++|//[^\n]*+(?:\n|\Z))*+"
_SKIPPED = re.compile(_GAP)
_DEFINITION = re.compile(rf"{_STRING}|{_VALUE}|//[^\n]*+|({_NAME}){_GAP}=(?!=){_GAP}", re.ASCII)
_IN_BODY = re.compile(
    rf"{_STRING}|{_VALUE}|(//[^\n]*)|\b(dense_resource){_GAP}<|({_NAME})(?![\w$.-]|{_GAP}<)", re.ASCII
)

_RELATION = re.compile(rf"{_STRING}|([<>]=)")
MAX_NESTED = 100
"""The maximum nesting depth of an alias's value. Deeper values could exceed Python's recursion limit when they are
printed or compared."""
MAX_EXPANDED = 2**22
"""The number of characters to which the aliases of any module may expand. A module may exceed it by
`MAX_TIMES` times the length of its text."""
MAX_TIMES = 16
"""Multiple of the length of a module's text by which its aliases may exceed `MAX_EXPANDED`, so that the time stays
linear in the length of the text."""

NUMERIC_ATTRIBUTES = {"stablehlo.channel_handle"}
"""Attributes of known dialects that are stored as text. Their fields are numbers, which no alias can define."""

COMPLETE_DIALECTS = {"stablehlo", "chlo", "sdy"}
"""Dialects all of whose types this project knows."""

_COMMENT = (
    "an attribute of an unknown dialect must not contain a comment, because the comment would become part of its text"
)
_BRACKET = "an attribute of an unknown dialect must not contain '>=', because '>=' looks like its closing bracket"
_RESOURCE = "an attribute of an unknown dialect must not contain a resource, whose content would be lost"


@dataclass
class Definition:
    """The definition of an alias in the text.

    Attributes:
        start, value: The positions of the alias's name and of its value.
        end: The position of the token after the definition; -1 until the definition is parsed.
        attribute: The value; None until the definition is parsed.
        expanded: The length of the value's text in characters, with all aliases in it expanded.
    """

    start: Position
    value: Position
    end: Position = -1
    attribute: Attribute | None = None
    expanded: int = 0


class AliasParser(Parser):
    """xDSL's parser, extended to accept MLIR's aliases. It also expands aliases inside attributes of unregistered
    dialects."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, "", name)
        self._parser_state = ParserState(Lexer(Input(text, name)))
        self._definitions: dict[str, Definition] = {}
        self._most_expanded = MAX_EXPANDED + MAX_TIMES * len(text)
        self._expanded = 0
        """The total number of characters to which the aliases expand that have been parsed so far."""
        self._value_start: Position = -1
        """The position of the value whose definition is being parsed."""
        self._depths: dict[int, int] = {}
        self._lengths: dict[int, int] = {}
        """The length of each location's text, by the id of the location. The definitions keep the locations alive."""
        for match in _DEFINITION.finditer(text):
            # A name with a dot is not an alias: `!llvm.ptr = …` may be an entry of an attribute of an unknown dialect.
            if match[1] and "." not in match[1]:
                self._declare(match[1], Definition(match.start(), match.end()))

    def _declare(self, alias: str, definition: Definition) -> None:
        end = definition.start + len(alias)
        if alias in self._definitions:
            self.raise_error(f"alias '{alias}' is defined more than once", definition.start, end)
        self._definitions[alias] = definition

    def read_definitions(self) -> None:
        """Parse all definitions in textual order, before any operation."""
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
            if not isinstance(value, LocationAttr) and self._expanded > before and self._depth(value) > MAX_NESTED:
                end = definition.start + len(alias)
                self.raise_error(
                    f"alias '{alias}' exceeds the maximum nesting depth of {MAX_NESTED}", definition.start, end
                )
        self.attribute_aliases.clear()
        self._value_start = -1
        self._resume_from(0)

    def _depth(self, attribute: Attribute) -> int:
        """Return the nesting depth of the attribute.

        Depths are cached by id. This is safe because the definitions keep the attributes alive.
        """
        if (depth := self._depths.get(id(attribute))) is None:
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
            depth = self._depths[id(attribute)] = 1 + max(inside, default=0)
        return depth

    def _expand(self, alias: str, start: Position) -> None:
        """Add the length of the alias's expansion to the total number of expanded characters."""
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
                f"aliases expand to more than {self._most_expanded} characters, the limit for a text of "
                f"{len(self.lexer.input.content)} characters: reduce the nesting of aliases",
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
        """Add the length of a location inside an attribute to the total. Such a location is printed in full.

        Do nothing if the location is the whole value of the current definition.
        """
        if start == self._value_start:
            return
        for part in parts_first(location, self._lengths):
            own = location_pieces(part)
            lengths = (len(piece) if isinstance(piece, str) else self._lengths[id(piece)] for piece in own)
            self._lengths[id(part)] = min(sum(lengths), self._most_expanded + 1)
        self._count_expanded(self._lengths[id(location)], start, end)

    def read_at_once(self, definition: Definition) -> Attribute | None:
        """Parse a definition of a common form without the lexer, and set `definition.end`.

        Returns None for any other form.
        """
        return None

    def _parse_alias_def(self) -> None:
        alias, start = self._current_token.text, self.pos
        if "." in alias:
            self.raise_error(
                f"alias '{alias}' contains a dot, but dots are reserved for names of dialects",
                start,
                start + len(alias),
            )
        definition = self._definitions.get(alias)
        if definition is None or definition.start != start or definition.attribute is None:
            self.raise_error("expected an operation, or the definition of an alias: '#name = …'")
        self.attribute_aliases[alias] = definition.attribute
        self._resume_from(definition.end)

    def check_definitions(self) -> None:
        """Raise `ParseError` at the first definition of an alias inside an operation."""
        for alias, definition in self._definitions.items():
            if alias not in self.attribute_aliases:
                start = definition.start
                message = "an alias must be defined at the top level of the file, not inside an operation"
                self.raise_error(message, start, start + len(alias))

    def is_location(self, alias: str) -> bool:
        definition = self._definitions.get(alias)
        return definition is not None and isinstance(definition.attribute, LocationAttr)

    def aliased_location(self, alias: str) -> LocationAttr:
        """Return the location of an alias that may be defined anywhere in the text.

        Raises:
            ParseError: The alias is undefined, or does not define a location.
        """
        definition = self._definitions.get(alias)
        if definition is None or definition.attribute is None:
            self.raise_error(f"undefined location alias '{alias}'")
        if not isinstance(definition.attribute, LocationAttr):
            self.raise_error(f"the alias '{alias}' does not define a location")
        return definition.attribute

    def _parse_extended_type_or_attribute(self, attr_or_dialect_name: str, is_type: bool) -> Any:
        """Parse the part of an alias or a dialect attribute that follows its name."""
        alias = f"{'!' if is_type else '#'}{attr_or_dialect_name}"
        has_body = self._current_token.kind == MLIRTokenKind.LESS and self._follows_directly(alias)
        if "." not in alias and not has_body:
            return self._aliased_attribute(alias)
        if self._current_token.kind == MLIRTokenKind.LESS and not has_body:
            self.raise_error(f"'<' must directly follow the name '{alias}', without white space")
        start = self.pos
        parsed = super()._parse_extended_type_or_attribute(attr_or_dialect_name, is_type)
        if has_body and self.lexer.input.content.find("//", start, self.pos) >= 0:
            self._check_comments(start)
        return parsed

    def _check_comments(self, start: Position) -> None:
        """Raise `ParseError` for a bracket in a comment, because MLIR counts such brackets when it looks for the end of
        the body."""
        end = self._raw_scan_balanced(start + len("<")) + len(">")
        if self._position_after_gap(end) != self.pos:
            self.raise_error(
                "a comment inside an attribute must not contain brackets, because MLIR counts them", start, self.pos
            )

    def _position_after_gap(self, position: Position) -> Position:
        match = _SKIPPED.match(self.lexer.input.content, position)
        return position if match is None else match.end()

    def _follows_directly(self, name: str) -> bool:
        """Return whether the current token directly follows the name before it."""
        return self.lexer.input.content.startswith(name, self.pos - len(name))

    def _aliased_attribute(self, alias: str) -> Attribute:
        start = self.lexer.input.content.rindex(alias, 0, self.pos)
        if alias not in self.attribute_aliases:
            self.raise_error(f"undefined alias '{alias}'", start, start + len(alias))
        self._expand(alias, start)
        return self.attribute_aliases[alias]

    def _parse_dialect_type_or_attribute_body(
        self, attr_name: str, is_type: bool, is_opaque: bool, starting_opaque_pos: Position | None
    ) -> UnregisteredAttr | ParametrizedAttribute | Data[Any]:
        start = self.pos + len("<") if starting_opaque_pos is None else starting_opaque_pos
        parsed = super()._parse_dialect_type_or_attribute_body(attr_name, is_type, is_opaque, starting_opaque_pos)
        if is_type and isinstance(parsed, UnregisteredAttr) and attr_name.partition(".")[0] in COMPLETE_DIALECTS:
            self.raise_error(f"unknown type !{attr_name}", start, self.pos)
        if isinstance(parsed, UnregisteredAttr) and _IN_BODY.search(parsed.value.data):
            body = StringAttr(
                self._expand_aliases(parsed.value.data, start, parsed.attr_name.data in NUMERIC_ATTRIBUTES)
            )
            return parsed.new([parsed.attr_name, parsed.is_type, parsed.is_opaque, body])
        if isinstance(parsed, UnregisteredAttr) and self.lexer.input.content.startswith(EMPTY_BODY, start - len("<")):
            # xDSL stores no body for `<>`. Like MLIR, this does not distinguish `#foo.set<>` and `#foo<set<>>`.
            return parsed.new([parsed.attr_name, parsed.is_type, IntAttr(1), StringAttr(EMPTY_BODY)])
        return parsed

    def _expand_aliases(self, body: str, start: Position, is_numeric: bool) -> str:
        """Return the body of a textual attribute with all aliases expanded, since the output defines no aliases."""

        def expand(match: re.Match[str]) -> str:
            comment, resource, alias = match.groups()
            if not (comment or resource or alias) or "." in (alias or ""):
                return match[0]
            if comment and is_numeric:
                return ""
            if alias and is_numeric:
                self.raise_error("expected a number", start + match.start(), start + match.end())
            if alias in self.attribute_aliases:
                self._expand(alias, start + match.start())
            text = attribute_text(self.attribute_aliases[alias]) if alias in self.attribute_aliases else None
            if text is not None and not any(relation[1] for relation in _RELATION.finditer(text)):
                return (" " if body[match.start() - 1 : match.start()].isalnum() else "") + text
            undefined = _BRACKET if text else f"undefined alias '{alias}'"
            wrong = undefined if alias else _COMMENT if comment else _RESOURCE
            self.raise_error(wrong, start + match.start(), start + match.end())

        return _IN_BODY.sub(expand, body)
