"""Malformed functions in generic form are rejected at their position."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal

BODY = '^bb0(%x: f32):\n"func.return"(%x) : (f32) -> ()'
TYPE = "function_type = (f32) -> f32"
NO_TYPE = "the attribute 'function_type' of a function must be a type such as "
NO_END = "each block of a function must end with a terminator"

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
        "the function has 1 argument, but attributes for 0 arguments",
    ),
    "too many result attributes": (
        f", {TYPE}, res_attrs = [{{}}, {{}}]",
        BODY,
        "the function has 1 result, but attributes for 2 results",
    ),
    "argument attributes that are no list": (
        f", {TYPE}, arg_attrs = {{}}",
        BODY,
        "the attributes of the arguments must be a list of",
    ),
    "argument attributes that are no dictionaries": (
        f", {TYPE}, arg_attrs = [1]",
        BODY,
        "the attributes of the arguments must be a list of",
    ),
    "an unknown visibility": (
        f', {TYPE}, sym_visibility = "odd"',
        BODY,
        "the visibility of a function must be one of public, private, nested",
    ),
    "an empty block": (f", {TYPE}", "^bb0(%x: f32):", NO_END),
    "an empty block in front": (f", {TYPE}", f"^bb1(%y: f32):\n{BODY}", NO_END),
    "an end that is none": (f", {TYPE}", '^bb0(%x: f32):\n%y = "arith.negf"(%x) : (f32) -> f32', NO_END),
}


def function(properties: str, body: str) -> str:
    return f'"func.func"() <{{sym_name = "main"{properties}}}> ({{\n{body}\n}}) : () -> ()'


@pytest.mark.parametrize("what", WRONG)
def test_malformed_functions_are_rejected_at_their_position(what: str) -> None:
    properties, body, output = WRONG[what]
    with pytest.raises((Refusal, ParseError)) as refusal:
        verify_module(parse_module(function(properties, body), "in.mlir"))
    assert "in.mlir:1:1" in str(refusal.value)
    assert f"func.func: {output}" in str(refusal.value)


def test_verifier_rejects_a_function_without_type() -> None:
    module = parse_module(function(f", {TYPE}", BODY))
    (op,) = module.ops
    del op.properties["function_type"]
    with pytest.raises(Refusal, match=NO_TYPE):
        verify_module(module)


def test_function_without_a_region_is_rejected() -> None:
    text = f'"func.func"() <{{sym_name = "main", {TYPE}}}> : () -> ()'
    with pytest.raises(ParseError, match=r"a function must have exactly one region .*; this function has 0 regions"):
        parse_module(text)


def test_well_formed_functions_are_accepted() -> None:
    for extra in ("", ", arg_attrs = [{foo.x}], res_attrs = [{}]"):
        verify_module(parse_module(function(f", {TYPE}{extra}", BODY)))


PREDICATE = (
    'func.func @main(%x: {0}) {{\n%0 = "arith.{1}"(%x, %x) <{{{2}}}> : ({0}, {0}) -> i1\n"func.return"() : () -> ()\n}}'
)


@pytest.mark.parametrize(
    ("type_", "name", "property_", "message"),
    [
        ("i32", "cmpi", "predicate = 10 : i64", "the predicate is 10, expected 0 to 9"),
        ("i32", "cmpi", "predicate = -1 : i64", "the predicate is -1, expected 0 to 9"),
        ("i32", "cmpi", 'predicate = "eq"', "the predicate of a comparison is .*, expected an integer of type i64"),
        ("i32", "cmpi", "", "the predicate of a comparison is .*, expected an integer of type i64"),
        ("f32", "cmpf", "predicate = 16 : i64, fastmath = #arith.fastmath<none>", "expected 0 to 15"),
    ],
)
def test_unknown_predicates_are_rejected(type_: str, name: str, property_: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_module(PREDICATE.format(type_, name, property_))


@pytest.mark.parametrize("before", ["", "%i: i64", "%i: i32, %j: i32"])
def test_loop_region_argument_mismatch_is_rejected(before: str) -> None:
    end = '%go = "any.thing"() : () -> i1\n"scf.condition"(%go, %x) : (i1, i32) -> ()'
    loop = f'"scf.while"(%x) ({{\n^bb0({before}):\n{end}\n}}, {{\n^bb0(%k: i32):\n"scf.yield"(%k) : (i32) -> ()\n}})'
    with pytest.raises(ParseError, match=r"scf\.while: the arguments of a loop's regions must match the types"):
        parse_module(f"func.func @main(%x: i32) {{\n%r = {loop} : (i32) -> i32\nreturn\n}}")
