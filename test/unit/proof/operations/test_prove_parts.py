"""Every part of every construct makes a difference to the proof if it alone is changed."""

from __future__ import annotations

from inspect import get_annotations

import pytest
from xdsl.ir import Block, Operation, Region

from recompute.proof.operations.operation_parts import PARTS
from recompute.test.unit.proof.programs import GROUP, T, compare, main, private

# In these programs `$` is the type of every value.
LOG = '"stablehlo.custom_call"(%p) <{call_target_name = "log"}> : ($) -> ()'
EFFECT = main("func.call @g(%x) : ($) -> ()\nreturn %x", f"func.func private @g(%p: $) {{\n{LOG}\nfunc.return\n}}")
VALUE = main("%a = call @g %x\nreturn %a", private("g", f"{LOG}\nreturn %p"))
LOOP = main(
    "%a = while %x (%i) {\n%j = call @g %i\n} yield %j\nreturn %a",
    private("g", f"{LOG}\n%q = tanh %p\nreturn %q"),
)
UNKNOWN = main("""%b = "foo.bar"(%x, %y) <{k = 1 : i32}> ({
^bb0(%v: $, %w: $):
%a = "stablehlo.tanh"(%v) {e = 1 : i32} : ($) -> $
%c = "stablehlo.add"(%a, %w) : ($, $) -> $
"foo.end"(%c) {n = 1 : i32} : ($) -> ()
}, {
}) {d = 1 : i32} : ($, $) -> $
return %b""")
NO_END = main("""%u = "foo.bar"(%x) ({
^bb0(%v: $):
%a = "stablehlo.tanh"(%v) : ($) -> $
}) : ($) -> ($)
return %x""")
BARRIER = main("%a, %b = optimization_barrier %x, %y\n%c = subtract %a, %b\nreturn %c")
GROUPED = main(GROUP.replace("%b = tanh %x", "%b = tanh %x\n" + LOG.replace("%p", "%x")))
LAYOUT = '%a = "sdy.sharding_constraint"(%x) <{sharding = "a"}> : ($) -> $\n'
LAID_OUT = main(f"{LAYOUT}return %x")
IN_A_BRANCH = main(f"""%c = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
%r = "stablehlo.case"(%c) ({{
{LAYOUT}"stablehlo.return"(%x) : ($) -> ()
}}) : (tensor<i32>) -> $
return %x""")
DEVICE = '%d = "stablehlo.partition_id"() : () -> tensor<ui32>\n'
USE = '%b = "foo.use"(%d) : (tensor<ui32>) -> $\n'


def manual(inside: str) -> str:
    """Return a manual computation, whose region runs per device."""
    return f"""%m = "sdy.manual_computation"(%x) ({{
^bb0(%v: $):
{inside}"sdy.return"(%b) : ($) -> ()
}}) : ($) -> $
return %m"""


def unknown(inside: str) -> str:
    return f'"foo.bar"() ({{\n{inside}}}) : () -> ()\nreturn %x'


FOO_A, FOO_B = '"foo.a"() : () -> ()\n', '"foo.b"() : () -> ()\n'
PLAIN_RETURN, SHARDED_RETURN = "return %x\n", '"func.return"(%x) {mhlo.sharding = "a"} : ($) -> ()\n'

# construct -> the program; part -> what is changed, and what it becomes
CHANGES: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "an unknown operation": (
        UNKNOWN,
        {
            "its name": ('"foo.bar"', '"foo.baz"'),
            "a property": ("k = 1", "k = 2"),
            "the name of a property": ("k = 1", "l = 1"),
            "an attribute": ("d = 1", "d = 2"),
            "a property that becomes an attribute": ("<{k = 1 : i32}> ({", "({"),
            "its operands": ("(%x, %y) <", "(%y, %x) <"),
            "a region less": ("}, {\n})", "})"),
            "a region more": ("}, {\n})", "}, {\n}, {\n})"),
            "an argument more": ("%w: $):", "%w: $, %u: $):"),
            "a dead operation in it": ('"foo.end"', '%u = "stablehlo.sine"(%v) : ($) -> $\n"foo.end"'),
            "an operation in it twice": ('"foo.end"', '%u = "stablehlo.add"(%a, %w) : ($, $) -> $\n"foo.end"'),
            "an operation in it": ("stablehlo.tanh", "stablehlo.sine"),
            "an attribute in it": ("e = 1", "e = 2"),
            "operands in it": ("(%a, %w)", "(%w, %a)"),
            "a value from around it": ("(%a, %w)", "(%a, %y)"),
            "a barrier in it": ("(%v: $, %w: $):", "(%t: $, %w: $):\n%v = optimization_barrier %t"),
            "the end's name": ('"foo.end"', '"foo.stop"'),
            "the end's attribute": ("n = 1", "n = 2"),
            "what the end reads": ('"foo.end"(%c)', '"foo.end"(%a)'),
            "an end that is known": ('"foo.end"(%c) {n = 1 : i32}', '"stablehlo.return"(%c)'),
        },
    ),
    "a region without an end": (
        NO_END,
        {
            "an operation": ("stablehlo.tanh", "stablehlo.sine"),
            "what it reads": ('"stablehlo.tanh"(%v)', '"stablehlo.tanh"(%x)'),
            "that there is one": ('%a = "stablehlo.tanh"(%v) : ($) -> $\n', ""),
        },
    ),
    "a call for its effects": (
        EFFECT,
        {
            "an attribute of the call": ("@g(%x) :", '@g(%x) {mhlo.frontend_attributes = "a"} :'),
            "an attribute of the function": ("@g(%p: $)", '@g(%p: $) attributes {execution_thread = "a"}'),
            "an attribute of the argument": ("%p: $", '%p: $ {mhlo.sharding = "a"}'),
            "an attribute of the return": ("func.return\n}", '"func.return"() {mhlo.sharding = "a"} : () -> ()\n}'),
        },
    ),
    "a call": (VALUE, {"an attribute of the return": ("return %p\n", SHARDED_RETURN.replace("%x", "%p"))}),
    "a call in a loop": (
        LOOP,
        {
            "an attribute of the call": ("call @g %i", "call @g %i {other = 1 : i32}"),
            "an attribute of the return": ("return %q\n", SHARDED_RETURN.replace("%x", "%q")),
        },
    ),
    "a public function": (main("return %x"), {"an attribute of the return": (PLAIN_RETURN, SHARDED_RETURN)}),
    "a barrier": (BARRIER, {"an attribute": ("barrier %x, %y", "barrier %x, %y {other = 1 : i32}")}),
    "a group with effects": (
        GROUPED,
        {
            "an attribute": ("}) :", "}) {other = 1 : i32} :"),
            "an attribute of its yield": ('yield"(%b)', 'yield"(%b) {other = 1 : i32}'),
        },
    ),
    "a sharding constraint without uses": (
        LAID_OUT,
        {"its sharding": ('sharding = "a"', 'sharding = "b"'), "that there is one": (LAYOUT, "")},
    ),
    "an unused sharding constraint in a branch": (
        IN_A_BRANCH,
        {"its sharding": ('sharding = "a"', 'sharding = "b"'), "that there is one": (LAYOUT, "")},
    ),
    "a manual computation": (
        main(DEVICE + manual(USE)),
        {
            "where the device is asked for": (DEVICE + manual(USE), manual(DEVICE + USE)),
            "its end": ("sdy.return", "other.return"),
        },
    ),
    "the device in an unknown region": (
        main(DEVICE + unknown(USE)),
        {"where it is asked for": (DEVICE + unknown(USE), unknown(DEVICE + USE))},
    ),
    "the top level": (
        main("return %x", FOO_A + FOO_B + DEVICE),
        {
            "an operation less": (FOO_A, ""),
            "the order": (FOO_A + FOO_B, FOO_B + FOO_A),
            "a pure operation without uses": (DEVICE, ""),
        },
    ),
}
CASES = [(construct, part) for construct, (_, parts) in CHANGES.items() for part in parts]


def equal(before: str, after: str) -> bool:
    return compare(before.replace("$", T), after.replace("$", T)).proved


@pytest.mark.parametrize(("construct", "part"), CASES)
def test_each_part_makes_a_difference(construct: str, part: str) -> None:
    text, changes = CHANGES[construct]
    old, new = (each.replace("$", T) for each in changes[part])
    text = text.replace("$", T)
    assert text.count(old) == 1
    other = text.replace(old, new)
    if part == "a property that becomes an attribute":
        other = other.replace("{d = 1 : i32}", "{d = 1 : i32, k = 1 : i32}")
    for item in (text, other):
        assert equal(item, item.replace("%x", "%renamed"))
    assert not equal(text, other)
    assert not equal(other, text)


def test_effects_in_and_out_of_attributed_call_differ() -> None:
    """Effects inside a call with attributes differ from the same effects outside: the attributes apply to them."""
    call = '"func.call"(%x) <{callee = @g}> {mhlo.frontend_attributes = "a"} : ($) -> ()\n'
    log = LOG.replace("%p", "%x") + "\n"
    once, both = (f"func.func private @g(%p: $) {{\n{body}\nfunc.return\n}}" for body in (LOG, f"{LOG}\n{LOG}"))
    assert not equal(main(f"{log}{call}return %x", once), main(f"{call}return %x", both))
    assert not equal(main(f"{call}{log}return %x", once), main(f"{call}return %x", both))


def test_nested_and_sequential_attributed_calls_differ() -> None:
    attributes = "{other = 1 : i32}"
    inner = private("id", "return %p")
    outer = private("f", f"%r = call @id %p {attributes}\nreturn %r")
    after = main(f"%a = call @id %x {attributes}\n%b = call @id %a {attributes}\nreturn %b", inner)
    assert not equal(after, main(f"%a = call @f %x {attributes}\nreturn %a", f"{inner}\n{outer}"))


def test_operation_in_and_before_attributed_call_differ() -> None:
    call = "%b = call @g {} {{other = 1 : i32}}\nreturn %b"
    inside = main(call.format("%x"), private("g", "%q = tanh %p\nreturn %q"))
    outside = main("%a = tanh %x\n" + call.format("%a"), private("g", "return %p"))
    assert not equal(inside, outside)


def test_call_in_unknown_region_is_not_its_body() -> None:
    function = private("g", "%q = tanh %p\nreturn %q")
    called = main(unknown('%a = "func.call"(%x) <{callee = @g}> : ($) -> $\n'), function)
    assert not equal(called, main(unknown('%a = "stablehlo.tanh"(%x) : ($) -> $\n'), function))
    assert equal(called, called.replace("@g", "@h")), "private functions have no names there either"
    assert not equal(called, called.replace("tanh", "sine"))


def test_sharding_constraint_may_be_repeated() -> None:
    assert equal(LAID_OUT, LAID_OUT.replace(LAYOUT, LAYOUT + LAYOUT.replace("%a", "%b")))


def test_unread_sharding_constraint_is_named() -> None:
    laid_out, gone = LAID_OUT.replace("$", T), main("return %x")
    reason = "sdy.sharding_constraint in @main occurs only in the original program; it must not be dropped"
    assert compare(laid_out, gone).reason == reason
    assert compare(gone, laid_out).reason == reason.replace("original", "rewritten").replace("dropped", "added")


def test_property_and_attribute_of_an_unknown_operation_differ() -> None:
    first, other = (
        main(f'"foo.bar"(%x) {text} : ({T}) -> ()\nreturn %x') for text in ("<{k = 1 : i32}>", "{k = 1 : i32}")
    )
    assert "before foo.bar with k as a property, after foo.bar with k as an attribute" in compare(first, other).reason


@pytest.mark.parametrize("kind", [Operation, Region, Block])
def test_every_field_of_a_construct_is_tested(kind: type[object]) -> None:
    """The listed parts are the annotated fields of xDSL's class, including inherited ones."""
    annotated = {name for base in kind.__mro__ for name in get_annotations(base)}
    assert annotated == PARTS[kind.__name__].keys()
