"""A call of a function without a body is an effect, whose term contains the declaration."""

from __future__ import annotations

import pytest

from recompute.test.unit.proof.programs import SQUARE, T, compare, main, private

# In generic form, because xDSL's parser loses argument attributes of declarations in custom form.
DECLARATION = (
    f'"func.func"() <{{sym_name = "rt", sym_visibility = "private", function_type = ({T}) -> {T}, '
    "arg_attrs = [{my.kept}], res_attrs = [{my.out = 1 : i32}]}> ({}) {my.version = 1 : i32} : () -> ()"
)
OTHER = DECLARATION.replace('"rt"', '"rt2"')
PUBLIC = DECLARATION.replace('sym_visibility = "private", ', "")
BODY = """%a = tanh %x
%p = call @rt %a
%q = call @rt %p
%r = add %p, %q
return %r"""
STEP = main(BODY, f"{DECLARATION}\n{OTHER}")


def changed(old: str, new: str) -> str:
    assert old in STEP
    return STEP.replace(old, new, 1)


def test_pure_operations_around_external_calls_may_be_copied() -> None:
    proof = compare(STEP, changed("%r = add %p, %q", "%b = tanh %x\n%c = call @square %b\n%r = add %p, %q") + SQUARE)
    assert proof and proof.assumptions == ()
    assert compare(
        changed("%q = call @rt %p", "%q = call @rt %a"), changed("%q = call @rt %p", "%b = tanh %x\n%q = call @rt %b")
    )


UNEQUAL = {
    "a call is dropped": ("%q = call @rt %p", "%q = tanh %p"),
    "an unread call is added": ("%r = add", "%s = call @rt %p\n%r = add"),
    "a call is copied": ("%q = call @rt %p\n%r = add %p, %q", "%q = call @rt %p\n%s = call @rt %a\n%r = add %s, %q"),
    "a result is that of the other call": ("%r = add %p, %q", "%r = add %q, %q"),
    "the operand differs": ("call @rt %p", "call @rt %a"),
    "the callee differs": ("call @rt %p", "call @rt2 %p"),
    "the call has an attribute": ("call @rt %p", "call @rt %p {my.version = 1 : i32}"),
    "an attribute of the call has the name of a label": (
        "call @rt %p",
        'call @rt %p {"declaration: my.version" = 1 : i32}',
    ),
    "the call is inside a loop": ("%q = call @rt %p", "%q = while %p (%i) {\n%j = call @rt %i\n} yield %j"),
    "the declaration has another attribute": ("my.version = 1", "my.version = 2"),
    "the declaration has no attribute": ("{my.version = 1 : i32}", ""),
    "an argument has no attribute": ("{my.kept}", "{}"),
    "a result has another attribute": ("my.out = 1", "my.out = 2"),
    "the declaration is nested": ('"private"', '"nested"'),
    "the declaration is public": (DECLARATION, PUBLIC),
    "the function has a body": (DECLARATION, private("rt", "return %p")),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_changed_external_calls_are_not_proved(name: str) -> None:
    other = changed(*UNEQUAL[name])
    assert not compare(STEP, other)
    assert not compare(other, STEP)
    assert compare(other, other), "the change alone is the reason"


def in_order(calls: list[str]) -> str:
    """Return a program that runs two operations in this order and returns the sum of %p and %q."""
    return main("\n".join([*calls, "%r = add %p, %q\nreturn %r"]), f"{DECLARATION}\n{OTHER}")


def test_order_of_two_calls_is_compared() -> None:
    calls = ["%p = call @rt %x", "%q = call @rt2 %x"]
    first, second = (
        main("\n".join([*order, "%r = add %p, %q\nreturn %r"]), f"{DECLARATION}\n{OTHER}")
        for order in (calls, calls[::-1])
    )
    assert compare(first, first)
    reason = compare(first, second).reason
    assert "the effects before func.call of external @rt: before no effect" in reason


def test_order_of_a_call_and_an_unknown_operation_is_compared() -> None:
    calls = ["%p = call @rt %x", '%q = "foo.b"(%x) : (tensor<4xf32>) -> tensor<4xf32>']
    first, second = (
        main("\n".join([*order, "%r = add %p, %q\nreturn %r"]), DECLARATION) for order in (calls, calls[::-1])
    )
    assert compare(first, first)
    assert not compare(first, second)


def test_message_names_the_attribute_of_the_declaration() -> None:
    reason = compare(STEP, changed("my.version = 1", "my.version = 2")).reason
    assert "func.call of external @rt" in reason
    assert "declaration: my.version = 1 : i32" in reason and "declaration: my.version = 2 : i32" in reason


def test_declaration_of_other_types_than_the_call_is_refused() -> None:
    wrong = DECLARATION.replace("-> tensor<4xf32>", "-> tensor<4xf64>")
    reason = compare(main("%a = call @rt %x\nreturn %a", wrong), STEP).reason
    assert "func.call of @rt has operands or results that do not match the function" in reason


def test_uncalled_declarations_are_ignored_if_private_and_compared_if_public() -> None:
    plain = main("return %x")
    assert compare(plain, main("return %x", DECLARATION))
    public = main("return %x", PUBLIC)
    assert compare(public, public)
    assert not compare(plain, public) and not compare(public, plain)
    assert not compare(public, main("return %x", private("rt", "return %p").replace("private ", "")))


LOOP_BODY = "%j = call @rt %i\n%k = call @rt2 %i"
LOOP = main(f"%w = while %x (%i) {{\n{LOOP_BODY}\n}} yield %j\nreturn %w", f"{DECLARATION}\n{OTHER}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%k = call @rt2 %i\n", ""),
        ("%k = call @rt2 %i\n", "%k = call @rt2 %i\n%l = call @rt2 %i\n"),
        ("%j = call @rt %i\n%k = call @rt2 %i\n", "%k = call @rt2 %i\n%j = call @rt %i\n"),
        ("%k = call @rt2 %i", "%k = call @rt2 %j"),
        ("my.version = 1", "my.version = 2"),
    ],
    ids=["dropped", "copied", "reordered", "other operand", "other declaration"],
)
def test_changed_external_calls_in_a_loop_are_not_proved(old: str, new: str) -> None:
    assert compare(LOOP, LOOP.replace("%j = call", "%l = tanh %i\n%j = call"))
    assert not compare(LOOP, LOOP.replace(old, new)) and not compare(LOOP.replace(old, new), LOOP)
