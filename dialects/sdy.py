"""Shardy for xDSL: what JAX prints of shardings, taken along as it is.

sdy.mesh @mesh = <["data"=2]>
%1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : type

The bodies of meshes and shardings are text here: nobody but the partitioner reads them. Assembly and properties are
those of Shardy's `ops.td`. A constraint is no `Pure` operation: without readers it still says how to shard its operand.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Data, Dialect
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, SymbolOpInterface
from xdsl.utils.mlir_lexer import PunctuationSpelling

from .stablehlo.checks import check_types
from .stablehlo.formats import Properties, SameTypeOp, parse_attributes, print_attributes

_CLOSED_BY: dict[PunctuationSpelling, PunctuationSpelling] = {"[": "]", "{": "}", "(": ")", "<": ">"}
_BETWEEN: tuple[PunctuationSpelling, ...] = (",", "=", ":", "?", "-", "->", "*")


class TextAttr(Data[str]):
    """`<…>`, the text between the brackets as it stands."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        parser.parse_punctuation("<")
        start = parser.pos
        _skip(parser)
        text = parser.lexer.input.slice(start, parser.pos)
        assert text is not None, "both ends lie within the text"
        parser.parse_punctuation(">")
        return text.strip()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _skip(parser: AttrParser) -> None:
    """Read on to the bracket that closes what is open."""
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
    """`#sdy.mesh<["data"=2]>`"""

    name = "sdy.mesh"


@irdl_attr_definition
class ShardingAttr(TextAttr):
    """`#sdy.sharding<@mesh, [{"data"}, {}]>`"""

    name = "sdy.sharding"


@irdl_op_definition
class MeshOp(IRDLOperation):
    """The devices, and the names of the axes along which they lie."""

    name = "sdy.mesh"

    sym_name = prop_def(StringAttr)
    mesh = prop_def(MeshAttr)

    traits = traits_def(SymbolOpInterface(), NoMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        mesh = MeshAttr(MeshAttr.parse_parameter(parser))
        attributes = parse_attributes(parser, cls, ("sym_name", "mesh"))[1]
        return cls.create(properties={"sym_name": name, "mesh": mesh}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" = ")
        self.mesh.print_parameter(printer)
        print_attributes(printer, self, ("sym_name", "mesh"))


@irdl_op_definition
class ShardingConstraintOp(SameTypeOp):
    """The same value, to be laid out over the devices like this."""

    name = "sdy.sharding_constraint"

    input = operand_def()
    sharding = prop_def(ShardingAttr)
    result = result_def()

    SPELLED: ClassVar[tuple[str, ...]] = ("sharding",)

    @classmethod
    def parse_own(cls, parser: Parser) -> Properties:
        return {"sharding": ShardingAttr(ShardingAttr.parse_parameter(parser))}

    def print_own(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.sharding.print_parameter(printer)

    def verify_(self) -> None:
        check_types("the result", self.result.type, self.input.type)


ATTRIBUTES: list[type[Attribute]] = [MeshAttr, ShardingAttr]
SDY = Dialect("sdy", [MeshOp, ShardingConstraintOp], ATTRIBUTES)
