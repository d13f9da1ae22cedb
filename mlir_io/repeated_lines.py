"""A fast path of the parser for lines that differ from an earlier line only in value names.

A step has hundreds of lines such as `%7 = stablehlo.add %5, %6 : …`, or `%7 = "stablehlo.add"(%5, %6) : …` in generic
form. Types and properties of such a line depend only on its text without the names, so a line with the same text as an
earlier one becomes an operation with the same types and properties, and its own operands.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.lexer import Position, Span

from .aliases import LocationParser
from .custom_forms import CustomSyntaxParser

# At most one result, no attributes, regions, strings or comments; and the next line does not continue it.
_NAME = r"[0-9]+|[a-zA-Z$._-][\w$.-]*"
_PLAIN = r"[^\n\"{}/]*+"
_CUSTOM = rf"(?:(?:stablehlo|chlo)\.|call ){_PLAIN}"
_GENERIC = rf'"(?:stablehlo\.|chlo\.|func\.call)\w*"\([%\w$.#, -]*\) (?:<{{{_PLAIN}}}> )?{_PLAIN}'
_NEXT = r"(?=[ \t\r\n]*(?:[%}^\"]|(?!loc\b)[a-z]))"
_LINE = re.compile(rf"(?:(%(?:{_NAME})) = )?({_CUSTOM}|{_GENERIC})\n{_NEXT}", re.ASCII)
_LOCATION = " loc(#"
_OPERAND = re.compile(rf"%({_NAME})(#[0-9]+)?", re.ASCII)
# An alias, which `.` and `<` never follow, may expand to anything; other locations are parsed by tokens.
_UNUSUAL = re.compile(r"[#!](?!\w+[.<])|\bloc\b", re.ASCII)


@dataclass(frozen=True)
class SimpleLine:
    """A line that holds one operation without regions, attributes, strings or comments.

    Attributes:
        result: The span of the result's name; None without a result.
        text: The line without its result and location, with `%` in place of each operand.
        operands: Name and result index, such as `#1`, of each operand.
        location: The alias of the location; empty without one.
        name, end: The positions of the operation's name and of the end of the line.
    """

    result: Span | None
    text: str
    operands: Sequence[tuple[str, str]]
    location: str
    name: Position
    end: Position


@dataclass(frozen=True)
class LineTemplate:
    """The operation that lines with one text stand for, apart from its operands."""

    kind: type[Operation]
    operand_types: Sequence[Attribute]
    result_types: Sequence[Attribute]
    properties: dict[str, Attribute]
    body: Region | None
    """The region that the short form `applies` stands for, with the location of the operation throughout."""


class RepeatedLineParser(LocationParser, CustomSyntaxParser):
    """xDSL's parser with templates: a line that repeats an earlier one is parsed for its value names alone."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._templates: dict[tuple[str, ...], LineTemplate] = {}
        """By the default dialects around the line, whose prefix it may omit, and its text."""

    def parse_repeated(self, line: SimpleLine) -> Operation | None:
        """Create the operation of the line from its template; return None if the line must be parsed by tokens."""
        template = self._templates.get((*self._parser_state.dialect_stack, line.text))
        name = "" if line.result is None else line.result.text[1:]
        if template is None or name in self.ssa_values or name in self.forward_ssa_references:
            return None
        if len(template.result_types) != (line.result is not None):
            return None
        if line.location and not self.is_location(line.location):
            return None
        operands = list[SSAValue]()
        for (operand, index), type_ in zip(line.operands, template.operand_types, strict=True):
            values = self.ssa_values.get(operand)
            if index or values is None or len(values) != 1:
                return None
            if values[0].type is not type_ and values[0].type != type_:
                return None
            operands.append(values[0])
        location = self.aliased_location(line.location) if line.location else self.location_at(line.name)
        op = template.kind.create(
            operands=operands,
            result_types=template.result_types,
            properties=template.properties,
            regions=[] if template.body is None else [_body_at(location, template.body)],
            location=location,
        )
        if line.result is not None:
            self._register_ssa_definition(name, op.results, line.result)
        self._resume_from(line.end)
        return op

    @abstractmethod
    def location_at(self, position: Position) -> LocationAttr:
        """Return the location for an operation that has no written one, given the position of its name."""

    def line_at(self, start: Position) -> SimpleLine | None:
        """Return the simple line that begins at `start`; None if the text there is not a simple line."""
        match = _LINE.match(self.lexer.input.content, start)
        if match is None:
            return None
        body, location = match[2], ""
        if body.endswith(")") and (cut := body.rfind(_LOCATION)) >= 0:
            body, location = body[:cut], body[cut + len(_LOCATION) - 1 : -1]
        text = _OPERAND.sub("%", body)
        if _UNUSUAL.search(text):
            return None
        result = Span(*match.span(1), self.lexer.input) if match[1] else None
        return SimpleLine(result, text, _OPERAND.findall(body), location, match.start(2), match.end())

    def learn(self, line: SimpleLine, op: Operation) -> None:
        """Store the operation of the line as the template for later lines with the same text."""
        # With a name twice, the text does not determine which operand is which.
        distinct = len(set(line.operands)) == len(line.operands) and not any(index for _, index in line.operands)
        ends_here = not self.lexer.input.content[line.end : self.pos].strip(" \t\r\n") and self.pos >= line.end
        if not distinct or not ends_here or op.attributes or not _has_implied_body(op, line):
            return
        if len(op.results) != (line.result is not None):
            return
        values = [self.ssa_values.get(name) for name, _ in line.operands]
        if [value[0] if value is not None and len(value) == 1 else None for value in values] == list(op.operands):
            types = tuple(op.operand_types), tuple(op.result_types)
            body = op.regions[0].clone() if op.regions else None
            template = LineTemplate(type(op), *types, dict(op.properties), body)
            self._templates[(*self._parser_state.dialect_stack, line.text)] = template


def _has_implied_body(op: Operation, line: SimpleLine) -> bool:
    """Return whether the operation has no region, or one region that the line implies.

    All of an implied region is at the operation's location.
    """
    if not op.regions:
        return True
    places = [place.location for block in op.regions[0].blocks for place in (*block.args, *block.ops)]
    return len(op.regions) == 1 and bool(line.location) and all(place is op.location for place in places)


def _body_at(location: LocationAttr, body: Region) -> Region:
    copy = body.clone()
    for block in copy.blocks:
        for place in (*block.args, *block.ops):
            place.location = location
    return copy
