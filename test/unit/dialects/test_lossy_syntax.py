"""What xDSL's own syntax would lose is printed in generic form, and read back as it was."""

from __future__ import annotations

import pytest

from recompute.dialects.parser import parse_module
from recompute.dialects.printer import print_module

DECLARED = (
    '"func.func"() <{sym_name = "f", function_type = (f32) -> f32, sym_visibility = "private", '
    "arg_attrs = [{foo.x}]}> ({\n  }) : () -> ()"
)
RETURNS_A_FUNCTION = "func.func private @f() -> (() -> ())\n"
TEXTS = {
    "attributes of the arguments of a declaration": DECLARED,
    "attributes of the results of a declaration": DECLARED.replace("arg_attrs", "res_attrs"),
    "a function that returns a function": RETURNS_A_FUNCTION,
    "a call that returns a function": f"{RETURNS_A_FUNCTION}func.func @g() {{\n"
    '%0 = "func.call"() <{callee = @f}> : () -> (() -> ())\n"func.return"() : () -> ()\n}',
    "a region that is executed for nothing": 'func.func @g() {\n"scf.execute_region"() ({\n"scf.yield"() : () -> ()\n'
    '}) : () -> ()\n"func.return"() : () -> ()\n}',
    "an attribute of a comparison": 'func.func @g(%x: i32) {\n%0 = "arith.cmpi"(%x, %x) <{predicate = 0 : i64}> '
    '{foo.x} : (i32, i32) -> i1\n"func.return"() : () -> ()\n}',
}


@pytest.mark.parametrize("what", TEXTS)
def test_printed_and_read_back(what: str) -> None:
    module = parse_module(TEXTS[what])
    printed = print_module(module)
    again = parse_module(printed)
    assert print_module(again) == printed
    assert print_module(again, generic=True) == print_module(module, generic=True)


def test_a_region_that_is_executed_for_nothing_keeps_its_terminator() -> None:
    assert '"scf.yield"()' in print_module(parse_module(TEXTS["a region that is executed for nothing"]))
