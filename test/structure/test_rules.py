"""Each rule alone makes two programs equal; similar programs that the rule does not cover stay different."""

from __future__ import annotations

import pytest

from .normal.rules import RULES, explanation

T = "tensor<4xf32>"
UNARY = f": ({T}) -> {T}"
NOTHING = f": ({T}) -> ()"


def module(*functions: str, properties: str = "", attributes: str = "") -> str:
    message = f" <{{{properties}}}>" if properties else ""
    more = f" {{{attributes}}}" if attributes else ""
    return f'"builtin.module"(){message} ({{\n' + "\n".join(functions) + f"\n}}){more} : () -> ()\n"


def function(body: str, name: str = "main", more: str = "", attributes: str = "") -> str:
    properties = f'function_type = ({T}) -> {T}, sym_name = "{name}"{more}'
    message = f" {{{attributes}}}" if attributes else ""
    return f'"func.func"() <{{{properties}}}> ({{\n^bb0(%x: {T}):\n{body}\n}}){message} : () -> ()'


def main(body: str) -> str:
    return module(function(body))


PRIVATE = ', sym_visibility = "private"'
PUBLIC = ', sym_visibility = "public"'
SINE = f'%a = "stablehlo.sine"(%x) {UNARY}\n"func.return"(%a) {NOTHING}'
PLAIN = main(SINE)
ACT = f'"stablehlo.custom_call"(%x) <{{call_target_name = "act", has_side_effect = true}}> {NOTHING}\n'
CALL = f'%a = "func.call"(%x) <{{callee = @g}}> {UNARY}\n"func.return"(%a) {NOTHING}'
CONSTANT = f'"stablehlo.constant"() <{{value = dense<2.000000e+00> : {T}}}> : () -> {T}'


def loop(name: str, before: str, inside: str, end: str = "stablehlo.return") -> str:
    """Return a program with an operation that runs its region on `%x`."""
    last = f'"{end}"(%r) {NOTHING}\n' if end else ""
    region = f"({{\n^bb0(%v: {T}):\n{inside}{last}}})"
    return main(f'{before}%a = "{name}"(%x) {region} {UNARY}\n"func.return"(%a) {NOTHING}')


def case(name: str, before: str, inside: str) -> str:
    """Return a program with an operation that runs a region without arguments."""
    region = f'({{\n{inside}"stablehlo.return"(%r) {NOTHING}\n}})'
    index = '%i = "foo.index"() : () -> tensor<i32>\n'
    return main(f'{index}{before}%a = "{name}"(%i) {region} : (tensor<i32>) -> {T}\n"func.return"(%a) {NOTHING}')


MULTIPLY = f'%r = "stablehlo.multiply"(%v, %c) : ({T}, {T}) -> {T}\n'
NEGATED = f'%r = "stablehlo.negate"(%c) {UNARY}\n'
SAME: dict[str, tuple[str, str]] = {
    "properties of linalg may be written as attributes": (
        main(f'%i = "linalg.index"() <{{dim = 0 : i64}}> : () -> index\n{SINE}'),
        main(f'%i = "linalg.index"() {{dim = 0 : i64}} : () -> index\n{SINE}'),
    ),
    "attributes that start with recompute. are ignored": (
        PLAIN,
        main(f'%a = "stablehlo.sine"(%x) {{recompute.copy = 1 : i64}} {UNARY}\n"func.return"(%a) {NOTHING}'),
    ),
    "the name of the module is ignored": (PLAIN, module(function(SINE), properties='sym_name = "jit_f"')),
    "public is what a function is anyway": (PLAIN, module(function(SINE, more=PUBLIC))),
    "empty lists of attributes are as good as none": (PLAIN, module(function(SINE, more=", arg_attrs = [{}]"))),
    "groups are what they hold": (
        PLAIN,
        main(
            f'%a = "recompute.segment"() ({{\n%b = "stablehlo.sine"(%x) {UNARY}\n"recompute.yield"(%b) {NOTHING}\n}})'
            f' : () -> {T}\n"func.return"(%a) {NOTHING}'
        ),
    ),
    "barriers and depends give back their values": (
        PLAIN,
        main(
            f'%y = "stablehlo.optimization_barrier"(%x) {UNARY}\n%a = "stablehlo.sine"(%y) {UNARY}\n'
            f'"func.return"(%a) {NOTHING}'
        ),
    ),
    "private functions without calls are ignored": (PLAIN, module(function(SINE), function(SINE, "g", PRIVATE))),
    "names of private functions are ignored": (
        module(function(CALL), function(SINE, "g", PRIVATE)),
        module(function(CALL.replace("@g", "@h")), function(SINE, "h", PRIVATE)),
    ),
    "the order of functions is ignored": (
        module(function(SINE, "a"), function(SINE, "b")),
        module(function(SINE, "b"), function(SINE, "a")),
    ),
    "regions compute from what they capture": (
        case("stablehlo.case", f"%c = {CONSTANT}\n", NEGATED),
        case("stablehlo.case", "", f"%c = {CONSTANT}\n{NEGATED}"),
    ),
    "equal pure operations are one": (
        main(
            f'%a = "stablehlo.sine"(%x) {UNARY}\n%b = "stablehlo.add"(%a, %a) : ({T}, {T}) -> {T}\n'
            f'"func.return"(%b) {NOTHING}'
        ),
        main(
            f'%a = "stablehlo.sine"(%x) {UNARY}\n%c = "stablehlo.sine"(%x) {UNARY}\n'
            f'%b = "stablehlo.add"(%a, %c) : ({T}, {T}) -> {T}\n"func.return"(%b) {NOTHING}'
        ),
    ),
    "pure code without uses is ignored": (PLAIN, main(f'%d = "stablehlo.cosine"(%x) {UNARY}\n{SINE}')),
    "the order of pure code is ignored": (
        main(f'{ACT}%a = "stablehlo.sine"(%x) {UNARY}\n"func.return"(%a) {NOTHING}'),
        main(f'%a = "stablehlo.sine"(%x) {UNARY}\n{ACT}"func.return"(%a) {NOTHING}'),
    ),
}


@pytest.mark.parametrize("rule", SAME)
def test_each_rule_explains_its_example(rule: str) -> None:
    before, after = SAME[rule]
    assert explanation(before, after) == {rule}
    assert explanation(after, before) == {rule}


def test_inlined_call_and_unused_function_need_both_rules() -> None:
    called = module(function(CALL), function(SINE, "g", PRIVATE))
    both = {"calls are the body of the function", "private functions without calls are ignored"}
    assert explanation(PLAIN, called) == both


def test_every_rule_has_a_test() -> None:
    assert {*SAME, "calls are the body of the function"} == RULES.keys()


def test_equal_programs_need_no_rule() -> None:
    assert explanation(PLAIN, PLAIN) == frozenset()


DIFFERENT: dict[str, tuple[str, str]] = {
    "another operation": (PLAIN, PLAIN.replace("sine", "cosine")),
    "a property like a mark": (PLAIN, PLAIN.replace("(%x) :", "(%x) <{recompute.copy = 1 : i64}> :")),
    "an attribute": (PLAIN, PLAIN.replace("(%x) :", "(%x) {mhlo.sharding = 1 : i32} :")),
    "private instead of public": (PLAIN, module(function(SINE, more=PRIVATE))),
    "a list that says something": (PLAIN, module(function(SINE, more=", arg_attrs = [{foo.a}]"))),
    "a barrier with an attribute": (
        PLAIN,
        SAME["barriers and depends give back their values"][1].replace("(%x) :", "(%x) {mhlo.sharding = 1 : i32} :"),
    ),
    "an effect less": (PLAIN, main(ACT + SINE)),
    "effects in another order": (
        main(ACT + ACT.replace('"act"', '"other"') + SINE),
        main(ACT.replace('"act"', '"other"') + ACT + SINE),
    ),
    "an unknown operation without uses": (PLAIN, main(f'%d = "foo.op"(%x) {UNARY}\n{SINE}')),
    "a constraint without uses": (
        PLAIN,
        main(f'%d = "sdy.sharding_constraint"(%x) <{{sharding = #sdy.sharding<@m, [{{}}]>}}> {UNARY}\n{SINE}'),
    ),
    "an attribute of a call": (
        module(function(CALL), function(SINE, "g", PRIVATE)),
        module(function(CALL.replace("}>", "}> {foo.a}")), function(SINE, "g", PRIVATE)),
    ),
    "an attribute of a function that only acts": (
        module(function(CALL), function(ACT + SINE, "g", PRIVATE)),
        module(function(CALL), function(ACT + SINE, "g", PRIVATE, attributes="foo.a")),
    ),
    "an attribute of the end of a function": (PLAIN, PLAIN.replace("(%a) :", "(%a) {foo.a} :")),
    "an attribute of the end of a private function": (
        module(function(CALL), function(SINE, "g", PRIVATE)),
        module(function(CALL), function(SINE.replace("(%a) :", "(%a) {foo.a} :"), "g", PRIVATE)),
    ),
    "a region without an end": (
        loop("foo.loop", "", '%r = "stablehlo.sine"(%v) ' + UNARY + "\n", ""),
        loop("foo.loop", "", '%r = "stablehlo.cosine"(%v) ' + UNARY + "\n", ""),
    ),
    "what depends on the device, for many devices": (
        loop("sdy.manual_computation", '%c = "stablehlo.partition_id"() : () -> tensor<ui32>\n', MULTIPLY),
        loop("sdy.manual_computation", "", '%c = "stablehlo.partition_id"() : () -> tensor<ui32>\n' + MULTIPLY),
    ),
    "where a constant stands, for an unknown region": (
        loop("foo.loop", f"%c = {CONSTANT}\n", MULTIPLY),
        loop("foo.loop", "", f"%c = {CONSTANT}\n{MULTIPLY}"),
    ),
    "a barrier in an unknown region": (
        loop("foo.loop", "", f'%r = "stablehlo.sine"(%v) {UNARY}\n'),
        loop("foo.loop", "", f'%b = "stablehlo.optimization_barrier"(%v) {UNARY}\n%r = "stablehlo.sine"(%b) {UNARY}\n'),
    ),
    "unused values in an unknown region": (
        loop("foo.loop", "", f'%r = "stablehlo.sine"(%v) {UNARY}\n'),
        loop("foo.loop", "", f'%r = "stablehlo.sine"(%v) {UNARY}\n%b = "stablehlo.cosine"(%v) {UNARY}\n'),
    ),
    "an order in an unknown region": (
        loop("foo.loop", "", f'%r = "stablehlo.sine"(%v) {UNARY}\n%b = "stablehlo.cosine"(%v) {UNARY}\n'),
        loop("foo.loop", "", f'%b = "stablehlo.cosine"(%v) {UNARY}\n%r = "stablehlo.sine"(%v) {UNARY}\n'),
    ),
    "memory": (
        main(f'%m = "tensor.empty"() : () -> memref<4xf32>\n{SINE}'),
        PLAIN,
    ),
    "a division that may not run": (
        case("scf.if", f'%c = "arith.divsi"(%x, %x) : ({T}, {T}) -> {T}\n', NEGATED),
        case("scf.if", "", f'%c = "arith.divsi"(%x, %x) : ({T}, {T}) -> {T}\n{NEGATED}'),
    ),
    "functions by other names": (module(function(SINE, "a")), module(function(SINE, "b"))),
    "something else at the top level": (PLAIN, module('"foo.op"() : () -> ()', function(SINE))),
    "an attribute of the module": (PLAIN, module(function(SINE), attributes="foo.a")),
    "a declaration of another name": (
        module(
            function(CALL),
            f'"func.func"() <{{function_type = ({T}) -> {T}, sym_name = "g"{PRIVATE}}}> ({{\n}}) : () -> ()',
        ),
        module(
            function(CALL.replace("@g", "@h")),
            f'"func.func"() <{{function_type = ({T}) -> {T}, sym_name = "h"{PRIVATE}}}> ({{\n}}) : () -> ()',
        ),
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_different_programs_are_not_explained(what: str) -> None:
    before, after = DIFFERENT[what]
    assert explanation(before, after) is None
