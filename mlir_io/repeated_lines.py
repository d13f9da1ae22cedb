"""A fast path of the parser for lines that differ from an earlier line only in value names.

The types and properties of a line depend only on its text without these names. Therefore a later line with the same
text becomes an operation with the same types and properties, but with its own operands.

An operation in generic form with one short region, such as a reduction, is also treated as one line. The region must
not read values from outside, and its values are renamed to consecutive numbers:

    %7 = "stablehlo.reduce"(%5, %6) <{dimensions = array<i64: 0>}> ({
    ^bb0(%8: tensor<f32>, %9: tensor<f32>):
      %10 = "stablehlo.add"(%8, %9) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.utils.lexer import Position, Span

from .custom_forms import CustomSyntaxParser
from .location_parser import LocationParser

# A line has at most one result, contains no attributes, regions, strings or comments, and ends its operation.
_NAME = r"[0-9]+|[a-zA-Z$._-][\w$.-]*"
_PLAIN = r"[^\n\"{}/]*+"
# An operation in custom form, and an operation in generic form without regions.
_CUSTOM = rf"(?:(?:stablehlo|chlo)\.|call ){_PLAIN}"
_GENERIC = rf'"(?:stablehlo\.|chlo\.|func\.call)\w*"\([%\w$.#, -]*\) (?:<{{{_PLAIN}}}> )?{_PLAIN}'
# An operation in generic form with one region: the text before, inside and after the region.
_WITH_REGION = rf'("(?:stablehlo|chlo)\.\w*"\([%\w$.#, -]*\) (?:<{{{_PLAIN}}}> )?)\(\{{\n([^{{}}]*+)(\}}\) : {_PLAIN})'
# The beginning of the next line: the end of the block, a result, a label, or an operation.
_NEXT = r"(?=[ \t\r\n]*(?:[%}^\"]|(?!loc\b)[a-z]))"
_LINE = re.compile(rf"(?:(%(?:{_NAME})) = )?({_CUSTOM}|{_GENERIC})\n{_NEXT}", re.ASCII)
_REGION_LINE = re.compile(rf"(?:(%(?:{_NAME})) = )?(?:{_WITH_REGION})\n{_NEXT}", re.ASCII)
# The beginning of a location that is an alias, and an alias inside a region, either alone or in a named location.
_LOCATION = " loc(#"
_INNER_LOCATION = re.compile(r' loc\((?:"([^"\\\n\v\f]*)"\()?(#[\w$-]+)\)?\)', re.ASCII)
_LOCATED = " @@"
"""The placeholder for a location in the text of a region."""
# A name that a region defines, an operation inside a region, and an operand with its result index.
_DEFINED = re.compile(rf"%({_NAME})(?=: | = )", re.ASCII)
_INNER_OPERATION = re.compile(rf'^[ \t]*(?:%(?:{_NAME}) = )?(?=")', re.ASCII | re.MULTILINE)
_OPERAND = re.compile(rf"%({_NAME})(#[0-9]+)?", re.ASCII)
# Aliases are never followed by `.` or `<`. They can expand to anything, so lines with them are not simple. Lines with
# other locations are not simple either.
_UNUSUAL = re.compile(r"[#!](?!\w+[.<])|\bloc\b", re.ASCII)


class SimpleLine(NamedTuple):
    """A line that the fast path can read.

    Attributes:
        result: The span of the result's name; None if there is no result.
        text: The line without its result and locations, and with `%` in place of each operand.
        operands: The name and the result index, such as `#1`, of each operand.
        location: The alias of the operation's location; empty if there is no location.
        name, end: The positions of the operation's name and of the end of the line.
        inner_names: The names of the values that the region defines, in order.
        inner_operations: The positions of the names of the operations in the region.
        inner_locations: For each argument and operation in the region, the name and the alias of its location. The name
            may be empty. The list is empty if there are no locations.
    """

    result: Span | None
    text: str
    operands: Sequence[tuple[str, str]]
    location: str
    name: Position
    end: Position
    inner_names: Sequence[str] = ()
    inner_operations: Sequence[Position] = ()
    inner_locations: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class LineTemplate:
    """The parts that are common to all operations whose lines have the same text."""

    kind: type[Operation]
    operand_types: Sequence[Attribute]
    result_types: Sequence[Attribute]
    properties: dict[str, Attribute]
    body: Region | None
    """The region of the line, or the region for which `applies` stands, whose parts have the operation's location."""


class RepeatedLineParser(LocationParser, CustomSyntaxParser):
    """xDSL's parser with a fast path. If a line repeats an earlier line, the fast path reads only its value names."""

    def __init__(self, context: Context, text: str, name: str):
        super().__init__(context, text, name)
        self._templates: dict[tuple[str, ...], LineTemplate] = {}
        """The templates, by the text of a line and the default dialects there, whose prefixes the text may omit."""

    def parse_repeated(self, line: SimpleLine) -> Operation | None:
        """Create the operation of the line from its template; return None if the fast path cannot read the line."""
        template = self._templates.get((*self._parser_state.dialect_stack, line.text))
        name = "" if line.result is None else line.result.text[1:]
        if template is None or name in self.ssa_values or name in self.forward_ssa_references:
            return None
        if len(template.result_types) != (line.result is not None):
            return None
        if line.location and not self.is_location(line.location):
            return None
        if line.inner_names and any(map(self._is_taken, line.inner_names)):
            return None
        if not all(self.is_location(alias) for _, alias in line.inner_locations):
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
            regions=[] if template.body is None else [self._body(line, location, template.body)],
            location=location,
        )
        if line.result is not None:
            self._register_ssa_definition(name, op.results, line.result)
        self._resume_from(line.end)
        return op

    def _is_taken(self, name: str) -> bool:
        return name in self.ssa_values or name in self.forward_ssa_references

    def _body(self, line: SimpleLine, location: LocationAttr, body: Region) -> Region:
        """Return a copy of the template's region `body`, with the locations and the value names of the line."""
        copy = body.clone()
        for block in copy.blocks:
            for place, inner in zip(_places_of(block), self._inner_locations(line, location, block), strict=True):
                place.location = inner
            for value, name in zip(_values_of(block), line.inner_names, strict=False):
                value.name_hint = name if SSAValue.is_valid_name(name) else None
        return copy

    def _inner_locations(self, line: SimpleLine, location: LocationAttr, block: Block) -> Sequence[LocationAttr]:
        """Return the locations of the arguments and operations in the region of the line."""
        if not line.inner_operations:
            return [location for _ in _places_of(block)]
        if line.inner_locations:
            return [self.named_location(text, alias) for text, alias in line.inner_locations]
        # Arguments without a written location have no position either.
        return [*(argument.location for argument in block.args), *map(self.location_at, line.inner_operations)]

    @abstractmethod
    def location_at(self, position: Position) -> LocationAttr:
        """Return the location of an operation whose text contains no location, given the position of its name."""

    def line_at(self, start: Position) -> SimpleLine | None:
        """Return the simple line that begins at `start`; None if the text there is not a simple line."""
        match = _LINE.match(self.lexer.input.content, start)
        if match is None:
            return self._region_line_at(start)
        body, location = _without_location(match[2])
        text = _OPERAND.sub("%", body)
        if _UNUSUAL.search(text):
            return None
        result = Span(*match.span(1), self.lexer.input) if match[1] else None
        return SimpleLine(
            result=result,
            text=text,
            operands=_OPERAND.findall(body),
            location=location,
            name=match.start(2),
            end=match.end(),
        )

    def _region_line_at(self, start: Position) -> SimpleLine | None:
        """Return the operation with a short region that begins at `start`, as one line; None if there is no such
        operation."""
        match = _REGION_LINE.match(self.lexer.input.content, start)
        if match is None:
            return None
        header, region, (tail, location) = match[2], match[3], _without_location(match[4])
        inner = _INNER_LOCATION.sub(_LOCATED, region)
        defined = _DEFINED.findall(inner)
        used = _OPERAND.findall(inner)
        numbers = {name: f"%{number}" for number, name in enumerate(defined)}
        if len(numbers) != len(defined) or any(index or name not in numbers for name, index in used):
            return None
        text = _OPERAND.sub("%", header) + _OPERAND.sub(lambda operand: numbers[operand[1]], inner) + tail
        if "/" in text or _UNUSUAL.search(text):
            return None
        return SimpleLine(
            result=Span(*match.span(1), self.lexer.input) if match[1] else None,
            text=text,
            operands=_OPERAND.findall(header),
            location=location,
            name=match.start(2),
            end=match.end(),
            inner_names=defined,
            inner_operations=[match.start(3) + op.end() for op in _INNER_OPERATION.finditer(region)],
            inner_locations=_INNER_LOCATION.findall(region),
        )

    def learn(self, line: SimpleLine, op: Operation) -> None:
        """Store the operation of the line as the template for later lines with the same text."""
        # If a name occurs twice, the text does not determine the operands.
        distinct = len(set(line.operands)) == len(line.operands) and not any(index for _, index in line.operands)
        ends_here = not self.lexer.input.content[line.end : self.pos].strip(" \t\r\n") and self.pos >= line.end
        if not distinct or not ends_here or op.attributes or not self._has_known_body(op, line):
            return
        if len(op.results) != (line.result is not None):
            return
        values = [self.ssa_values.get(name) for name, _ in line.operands]
        if [value[0] if value is not None and len(value) == 1 else None for value in values] == list(op.operands):
            types = tuple(op.operand_types), tuple(op.result_types)
            body = op.regions[0].clone() if op.regions else None
            template = LineTemplate(type(op), *types, dict(op.properties), body)
            self._templates[(*self._parser_state.dialect_stack, line.text)] = template

    def _has_known_body(self, op: Operation, line: SimpleLine) -> bool:
        """Return whether the operation has no region, or a region whose locations and names `_body` reproduces."""
        if not op.regions:
            return not line.inner_operations
        blocks = op.regions[0].blocks
        if len(op.regions) != 1 or len(blocks) != 1 or not (line.location or line.inner_operations):
            return False
        places = _places_of(blocks[0])
        if line.inner_operations:
            if len(_values_of(blocks[0])) != len(line.inner_names) or len(blocks[0].ops) != len(line.inner_operations):
                return False
            if line.inner_locations and len(line.inner_locations) != len(places):
                return False
        locations = self._inner_locations(line, op.location, blocks[0])
        return all(place.location == location for place, location in zip(places, locations, strict=True))


def _without_location(line: str) -> tuple[str, str]:
    """Split the end of a line into its text and the (possibly empty) alias of its location."""
    if line.endswith(")") and (cut := line.rfind(_LOCATION)) >= 0:
        return line[:cut], line[cut + len(_LOCATION) - 1 : -1]
    return line, ""


def _places_of(block: Block) -> Sequence[BlockArgument | Operation]:
    """Return the block's arguments and operations, each of which has a location, in textual order."""
    return [*block.args, *block.ops]


def _values_of(block: Block) -> list[SSAValue]:
    """Return the values that are defined in the block, in textual order."""
    return [*block.args, *(result for op in block.ops for result in op.results)]
