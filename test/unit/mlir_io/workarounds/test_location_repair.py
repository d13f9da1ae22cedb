"""Stock xDSL with the repair reads aliases of locations that are defined later, and ranges, and reports their
errors."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.mlir_io.workarounds.location_forms import reads_later_aliases, repair_locations

repair_locations()  # as stock tools do when they load the plugin


def parse(text: str) -> ModuleOp:
    """Parse the text with xDSL's own parser."""
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    return Parser(context, text).parse_module()


def module_at(location: str, definitions: str = "") -> str:
    return f'module {{\n  "any.op"() : () -> () loc({location})\n}} loc(unknown)\n{definitions}'


@pytest.mark.parametrize(
    ("location", "definitions"),
    [
        ("#loc", '#loc = loc("m.py":1:2)\n'),
        ("#loc2", '#loc = loc("m.py":1:2)\n#loc1 = loc("a"(#loc))\n#loc2 = loc(callsite(#loc1 at #loc))\n'),
        ("#loc1", '#loc = loc("m.py":1:2 to 3:4)\n#loc1 = loc("a"(#loc))\n'),
        ('"m.py":1:2 to :9', ""),
        ('fused<"pass">["m.py":1:2, "a"]', ""),
    ],
)
def test_stock_parser_matches_project_parser(location: str, definitions: str) -> None:
    text = module_at(location, definitions)
    assert print_module(parse(text), debuginfo=True) == print_module(parse_module(text), debuginfo=True)
    assert reads_later_aliases()


@pytest.mark.parametrize(
    ("location", "definitions", "error"),
    [
        ("#loc", "", "undefined location alias '#loc'"),
        ("#loc", '#loc = loc("a"(#loc))\n', "undefined location alias '#loc'"),
        ('"m.py":4294967296:1', "", "the line or column 4294967296 exceeds the maximum, 4294967295"),
        ("somewhere", "", "expected a location"),
    ],
)
def test_invalid_locations_are_rejected(location: str, definitions: str, error: str) -> None:
    with pytest.raises(ParseError, match=error):
        parse(module_at(location, definitions))


def test_alias_of_non_location_is_rejected() -> None:
    with pytest.raises(ParseError, match="the alias '#a' does not define a location"):
        parse(f"#a = 1 : i32\n{module_at('#a')}")
