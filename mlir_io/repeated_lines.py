"""Lines that differ only in the names of their values: a step has hundreds of `%7 = stablehlo.add %5, %6 : …`.

What such a line says besides its values depends on its text alone. So it is parsed once; the next line with the same
text is an operation with the same types and properties, and other operands.
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

# One result, no attributes, regions, strings or comments; and the line behind it begins something new.
_NAME = r"[0-9]+|[a-zA-Z$._-][\w$.-]*"
_LINE = re.compile(
    rf"(%(?:{_NAME})) = ((?:(?:stablehlo|chlo)\.|call )[^\n\"{{}}/]*)\n(?=[ \t\r\n]*(?:[%}}^\"]|(?!loc\b)[a-z]))",
    re.ASCII,
)
_LOCATION = " loc(#"
_OPERAND = re.compile(rf"%({_NAME})(#[0-9]+)?", re.ASCII)
# Aliases may stand for anything, and other locations than those above are read one by one.
_UNUSUAL = re.compile(r"[#!]|\bloc\b")


@dataclass(frozen=True)
class Line:
    """`said`: the line without its result and location, and with `%` in place of each operand."""

    result: Span
    said: str
    operands: Sequence[tuple[str, str]]
    location: str
    name: Position
    end: Position


@dataclass(frozen=True)
class Template:
    """What lines of one text have in common; their operands are those of the text, in its order."""

    kind: type[Operation]
    operand_types: Sequence[Attribute]
    result_types: Sequence[Attribute]
    properties: dict[str, Attribute]
    body: Region | None
    """What `applies` stands for, all of it where the operation is."""


class RepeatedLineParser(LocationParser, CustomSyntaxParser):
    """xDSL's parser, which reads a line like one before by what differs."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._templates: dict[tuple[str, ...], Template] = {}
        """By the dialects in whose operations the line stands, which need not be named in it, and by what it says."""

    def parse_repeated(self, line: Line) -> Operation | None:
        """The operation of the line; None where there was no such line before, or something is unusual."""
        template = self._templates.get((*self._parser_state.dialect_stack, line.said))
        name = line.result.text[1:]
        if template is None or name in self.ssa_values or name in self.forward_ssa_references:
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
        self._register_ssa_definition(name, op.results, line.result)
        self._resume_from(line.end)
        return op

    @abstractmethod
    def location_at(self, position: Position) -> LocationAttr:
        """Of an operation whose name stands there, and which the text gives no location."""

    def line_at(self, start: Position) -> Line | None:
        """The line that begins here, if it is a simple one."""
        found = _LINE.match(self.lexer.input.content, start)
        if found is None:
            return None
        said, location = found[2], ""
        if said.endswith(")") and (cut := said.rfind(_LOCATION)) >= 0:
            said, location = said[:cut], said[cut + len(_LOCATION) - 1 : -1]
        bare = _OPERAND.sub("%", said)
        if _UNUSUAL.search(bare):
            return None
        return Line(
            Span(*found.span(1), self.lexer.input), bare, _OPERAND.findall(said), location, found.start(2), found.end()
        )

    def learn(self, line: Line, op: Operation) -> None:
        """What the line meant, for the next one that says the same."""
        # A name twice does not tell which operand is which.
        known = len(set(line.operands)) == len(line.operands) and not any(index for _, index in line.operands)
        ends_here = not self.lexer.input.content[line.end : self.pos].strip(" \t\r\n") and self.pos >= line.end
        if not known or not ends_here or op.attributes or len(op.results) != 1 or not _has_known_body(op, line):
            return
        values = [self.ssa_values.get(name) for name, _ in line.operands]
        if [value[0] if value is not None and len(value) == 1 else None for value in values] == list(op.operands):
            types = tuple(op.operand_types), tuple(op.result_types)
            body = op.regions[0].clone() if op.regions else None
            template = Template(type(op), *types, dict(op.properties), body)
            self._templates[(*self._parser_state.dialect_stack, line.said)] = template


def _has_known_body(op: Operation, line: Line) -> bool:
    """Whether it has no region, or one that the line does not spell, which is where the operation is."""
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
