"""Functions in generic form that are not whole are refused where they stand, whatever xDSL would make of them."""

from __future__ import annotations

import pytest

from recompute.dialects.diagnostics import Refusal
from recompute.dialects.parser import parse_module
from recompute.tools.verification import verify_module

BODY = '^bb0(%x: f32):\n"func.return"(%x) : (f32) -> ()'
TYPE = "function_type = (f32) -> f32"
NO_TYPE = "it needs 'function_type', a function type"
NO_END = "a block of it does not end with a terminator"

# what -> properties, body, what is said
WRONG = {
    "no type": ("", BODY, NO_TYPE),
    "no type, and another end": ("", '^bb0(%x: f32):\n"foo.end"(%x) : (f32) -> ()', NO_TYPE),
    "a type that is text": (', function_type = "x"', BODY, NO_TYPE),
    "a type that is a list": (", function_type = []", BODY, NO_TYPE),
    "a type that is a dictionary": (", function_type = {}", BODY, NO_TYPE),
    "a type that is no function": (", function_type = f32", BODY, NO_TYPE),
    "too few argument attributes": (
        f", {TYPE}, arg_attrs = []",
        BODY,
        "'arg_attrs' has 0 dictionaries, one for each argument would be 1",
    ),
    "too many result attributes": (
        f", {TYPE}, res_attrs = [{{}}, {{}}]",
        BODY,
        "'res_attrs' has 2 dictionaries, one for each result would be 1",
    ),
    "argument attributes that are no list": (f", {TYPE}, arg_attrs = {{}}", BODY, "'arg_attrs' is a list of dict"),
    "argument attributes that are no dictionaries": (f", {TYPE}, arg_attrs = [1]", BODY, "'arg_attrs' is a list of"),
    "an empty block": (f", {TYPE}", "^bb0(%x: f32):", NO_END),
    "an empty block in front": (f", {TYPE}", f"^bb1(%y: f32):\n{BODY}", NO_END),
    "an end that is none": (f", {TYPE}", '^bb0(%x: f32):\n%y = "arith.negf"(%x) : (f32) -> f32', NO_END),
}


def function(properties: str, body: str) -> str:
    return f'"func.func"() <{{sym_name = "main"{properties}}}> ({{\n{body}\n}}) : () -> ()'


@pytest.mark.parametrize("what", WRONG)
def test_refused(what: str) -> None:
    properties, body, said = WRONG[what]
    module = parse_module(function(properties, body), "in.mlir")
    with pytest.raises(Refusal, match=r"in\.mlir:1:1: error: func\.func: ") as refusal:
        verify_module(module)
    assert said in str(refusal.value)


def test_accepted() -> None:
    for extra in ("", ", arg_attrs = [{foo.x}], res_attrs = [{}]"):
        verify_module(parse_module(function(f", {TYPE}{extra}", BODY)))
