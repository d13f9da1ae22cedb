"""Attributes of Shardy: meshes, and shardings of tensors over devices.

#sdy.mesh<["data"=2]>
#sdy.sharding<@mesh, [{"data"}, {}]>
#sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>, <@mesh, []>]>
#sdy<manual_axes{"data"}>

The attributes store their bodies as text; `axes.py` parses meshes and shardings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

from xdsl.ir import Attribute, Data, OpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import PunctuationSpelling

_CLOSED_BY: dict[PunctuationSpelling, PunctuationSpelling] = {"[": "]", "{": "}", "(": ")", "<": ">"}
_GAP = re.compile(r'("(?:[^"\\]|\\.)*")|\s+')
_MESH_AXIS = re.compile(r'"([^"]+)"=(\d+)')
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(//)')
_BETWEEN: tuple[PunctuationSpelling, ...] = (",", "=", ":", "?", "-", "->", "*")


class TextAttr(Data[str]):
    """Base class of attributes `<…>` that store the text between the brackets."""

    WORDS: ClassVar[str]
    """A noun phrase for the attribute in error messages."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return _parse_text(parser)

    @classmethod
    def parse_short_or_full(cls, parser: AttrParser) -> Self:
        """Parse the short form, `<…>`, or the full form, `#sdy.mesh<…>`. The short form is also the printed form."""
        if not parser.lexer.input.content.startswith("#", parser.pos):
            return cls(_parse_text(parser))
        start, attribute = parser.pos, parser.parse_attribute()
        if not isinstance(attribute, cls):
            parser.raise_error(f"expected {cls.WORDS}, '<…>' or '#{cls.name}<…>'", start, parser.pos)
        return attribute

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _parse_text(parser: AttrParser) -> str:
    parser.parse_punctuation("<")
    start = parser.pos
    _skip(parser)
    text = parser.lexer.input.slice(start, parser.pos)
    assert text is not None, "both ends lie within the text"
    parser.parse_punctuation(">")
    if any(comment[1] for comment in _COMMENT.finditer(text)):
        parser.raise_error("comments inside a sharding are not supported: they would become a part of it", start)
    return _GAP.sub(lambda gap: gap[1] or " ", text.strip())


def _skip(parser: AttrParser) -> None:
    """Skip all tokens before the bracket that closes the innermost open bracket."""
    while True:
        if (opened := next(filter(parser.parse_optional_punctuation, _CLOSED_BY), None)) is not None:
            _skip(parser)
            parser.parse_punctuation(_CLOSED_BY[opened])
        elif not _skip_word(parser):
            return


def _skip_word(parser: AttrParser) -> bool:
    if any(parser.parse_optional_punctuation(mark) is not None for mark in _BETWEEN):
        return True
    words = (
        parser.parse_optional_identifier,
        parser.parse_optional_str_literal,
        parser.parse_optional_symbol_name,
        parser.parse_optional_integer,
    )
    return any(read() is not None for read in words)


@irdl_attr_definition
class MeshAttr(TextAttr):
    """A mesh of devices: `#sdy.mesh<["data"=2]>`"""

    name = "sdy.mesh"
    WORDS: ClassVar[str] = "a mesh"

    def axes(self) -> dict[str, int]:
        """Return the names and sizes of the axes, in order."""
        return {name: int(size) for name, size in _MESH_AXIS.findall(self.data)}


@irdl_attr_definition
class ShardingAttr(TextAttr):
    """The sharding of one value: `#sdy.sharding<@mesh, [{"data"}, {}]>`"""

    name = "sdy.sharding"
    WORDS: ClassVar[str] = "a sharding"


@irdl_attr_definition
class ShardingPerValueAttr(Data[tuple[str, ...]]):
    """The text of one sharding for each value: `#sdy.sharding_per_value<[<…>, <…>]>`"""

    name = "sdy.sharding_per_value"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        with parser.in_angle_brackets():
            return cls.parse_list(parser)

    @staticmethod
    def parse_list(parser: AttrParser) -> tuple[str, ...]:
        """Parse the text between the angle brackets."""
        parse = partial(ShardingAttr.parse_short_or_full, parser)
        return tuple(sharding.data for sharding in parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.text()}>")

    def text(self) -> str:
        """Return the text between the angle brackets."""
        return f"[{', '.join(f'<{sharding}>' for sharding in self.data)}]"


@irdl_attr_definition
class ManualAxesAttr(Data[tuple[str, ...]], OpaqueSyntaxAttribute):
    """The axes of a manual computation: `#sdy<manual_axes{"a", "b"}>`"""

    name = "sdy.manual_axes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.BRACES, parser.parse_str_literal))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_braces():
            printer.print_list(self.data, printer.print_string_literal)


SHARDINGS: list[type[Attribute]] = [MeshAttr, ShardingAttr, ShardingPerValueAttr, ManualAxesAttr]


@dataclass(frozen=True)
class Layout:
    """The layout of a value over a mesh: for each dimension, the axes that divide it, in major-to-minor order."""

    mesh: str
    dimensions: tuple[tuple[str, ...], ...]


_LAYOUT = re.compile(r"@([\w.$-]+), \[((?:\{[^{}]*\}(?:, )?)*)\]")
_DIVIDED_BY = re.compile(r"\{([^{}]*)\}")
_AXES = re.compile(r'(?:"[^"\\]*"(?:, )?)*\??')
_AXIS = re.compile(r'"([^"\\]*)"')


def layout_of(sharding: str) -> Layout | None:
    """Return the layout that the text of a sharding describes; None unless it contains only a mesh and whole axes."""
    if (match := _LAYOUT.fullmatch(sharding)) is None:
        return None
    dimensions = _DIVIDED_BY.findall(match[2])
    if not all(_AXES.fullmatch(axes) for axes in dimensions):
        return None
    return Layout(match[1], tuple(tuple(_AXIS.findall(axes)) for axes in dimensions))
