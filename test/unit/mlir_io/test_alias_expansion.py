"""The expansion of aliases is limited by the length of the text; locations remain aliases at any depth."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, NameLoc, NoneAttr, StringAttr
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io.aliases import MAX_EXPANDED, MAX_NESTED, MAX_TIMES
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.locations import LocationNumbers, location_text, source_position
from recompute.test.growing_inputs import CHAINED_LOCATIONS, DOUBLING_ALIASES, LOCATION_USE, aliases
from recompute.tools.diagnostics.reporting import InputText, of_exception

DEEP = 3_000


def error_of(text: str) -> str:
    with pytest.raises(ParseError) as caught:
        parse_module(text, "aliases.mlir")
    return str(of_exception(caught.value, InputText("<input>")))


@pytest.mark.parametrize("kind", DOUBLING_ALIASES)
def test_doubling_aliases_beyond_limit_are_rejected(kind: str) -> None:
    text = aliases(*DOUBLING_ALIASES[kind], levels=40)
    most = MAX_EXPANDED + MAX_TIMES * len(text)
    error = error_of(text)
    assert re.match(r"aliases\.mlir:\d+:\d+: error: ", error)
    assert (
        f"aliases expand to more than {most} characters, the limit for a text of {len(text)} characters: reduce"
        in error
    )


@pytest.mark.parametrize("kind", DOUBLING_ALIASES)
def test_aliases_of_a_few_levels_are_expanded(kind: str) -> None:
    printed = print_module(parse_module(aliases(*DOUBLING_ALIASES[kind], levels=8)))
    assert print_module(parse_module(printed)) == printed


def test_many_uses_of_a_long_alias_are_rejected() -> None:
    uses = '"any.thing"() {of = #a} : () -> ()\n' * 10_000
    error = error_of(f'#a = "{"x" * 100_000}"\n{uses}')
    assert re.match(r"aliases\.mlir:\d+:21: error: aliases expand to more than \d+ characters", error)


def test_short_alias_may_be_used_many_times() -> None:
    uses = '"any.thing"() {of = #map} : () -> ()\n' * 5_000
    text = "#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>\n" + uses
    assert print_module(parse_module(text)).count("affine_map<(d0, d1, d2, d3)") == 5_000


def test_chain_of_aliases_is_not_limited() -> None:
    printed = print_module(parse_module(aliases("[1]", "{last}", DEEP)))
    assert "{of = [1 : i64]}" in printed


def test_too_deep_aliases_are_rejected_at_definition() -> None:
    error = error_of(aliases("[1]", "[{last}]", DEEP))
    assert error == f"aliases.mlir:98:1: error: alias '#a97' exceeds the maximum nesting depth of {MAX_NESTED}"


@pytest.mark.parametrize("kind", CHAINED_LOCATIONS)
def test_locations_of_any_depth_are_read_and_printed(kind: str) -> None:
    text = aliases(*CHAINED_LOCATIONS[kind], levels=DEEP, use=LOCATION_USE)
    printed = print_module(parse_module(text), debuginfo=True)
    assert printed.count(" = loc(") >= DEEP - 1
    assert print_module(parse_module(printed), debuginfo=True) == printed


def stack(depth: int) -> CallSiteLoc | NameLoc:
    location = NameLoc(StringAttr("f"), NoneAttr())
    for _ in range(depth):
        location = CallSiteLoc(NameLoc(StringAttr("g"), NoneAttr()), location)
    return location


def test_source_position_is_found_in_a_deep_call_stack() -> None:
    position = FileLineColLoc(StringAttr("model.py"), IntAttr(3), IntAttr(4))
    assert source_position(CallSiteLoc(stack(DEEP), position)) == ("model.py", 3, 4)
    assert location_text(stack(2)) == 'callsite("g" at callsite("g" at "f"))'


def test_equal_locations_have_equal_numbers() -> None:
    numbers = LocationNumbers()
    assert numbers.number_of(stack(DEEP)) == numbers.number_of(stack(DEEP)) != numbers.number_of(stack(DEEP - 1))
