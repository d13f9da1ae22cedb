"""Programs whose text does not determine their meaning are refused."""

from __future__ import annotations

import pytest

from recompute.proof.prove import ProofOptions, prove
from recompute.support.operations import name_of

from .programs import GROUP, SQUARE, T, compare, load, main, private, program_of_one

PRIVATE = 'sym_name = "p", sym_visibility = "private"'
NOTHING = "function_type = () -> ()"
NO_YIELD = "recompute.segment must yield one value for each result, with the same type"


def function(properties: str, arguments: str = "", body: str = "func.return") -> str:
    """Return a function in generic form, whose properties may be invalid."""
    return f'"func.func"() <{{{properties}}}> ({{\n{arguments}{body}\n}}) : () -> ()'


REFUSED = {
    "recursion": (
        main("%a = call @square %x\nreturn %a", private("square", "%a = call @square %p\nreturn %a")),
        "@square calls itself; the proof does not support recursion",
    ),
    "a composite of a function without a body": (
        main(
            '%a = composite %x {name = "my.there", decomposition = @there}\nreturn %a',
            "func.func private @there(tensor<4xf32>) -> tensor<4xf32>",
        ),
        "func.func has no body; the proof needs one region with one block",
    ),
    "several blocks": (
        'func.func @main() {\n"cf.br"() [^a] : () -> ()\n^a:\nfunc.return\n}',
        "func.func has a region with 2 blocks; the proof supports only regions with one block",
    ),
    "a resource": (
        program_of_one("add %x, %y {value = dense_resource<weights> : tensor<4xf32>}"),
        "the content of the resource 'weights",
    ),
    "a resource in the text of an attribute": (
        program_of_one("add %x, %y {value = #other.attr<dense_resource<weights>>}"),
        "contains an alias, a resource or an escape",
    ),
    "an alias in the text of an attribute": (
        program_of_one("add %x, %y {value = #other.attr<[#map, 1]>}"),
        "contains an alias, a resource or an escape",
    ),
    "a numbered alias in the text of an attribute": (
        program_of_one("add %x, %y {value = #other.attr<[#0, 1]>}"),
        "contains an alias, a resource or an escape",
    ),
    "a numbered alias in the text of a type": (
        program_of_one("add %x, %y {value = #other.attr<!0>}"),
        "contains an alias, a resource or an escape",
    ),
    "a function named by an attribute": (
        main("%a = custom_call %x {called_computations = [@square]}\nreturn %a", SQUARE),
        "it refers to the function @square",
    ),
    "a function named in the text of an attribute": (
        main("%a = custom_call %x {called = #other.attr<@square>}\nreturn %a", SQUARE),
        "it refers to the function @square",
    ),
    "a function named in quotes in the text of an attribute": (
        main('%a = custom_call %x {called = #other.attr<@"square">}\nreturn %a', SQUARE),
        "it refers to the function @square",
    ),
    "a function with an odd name in the text of an attribute": (
        main(r'%a = custom_call %x {called = #other.attr<@"a\"b">}' + "\nreturn %a"),
        "contains an alias, a resource or an escape",
    ),
    "a call with results that the function does not have": (
        main('%a = "func.call"(%x) <{callee = @square}> : (tensor<4xf32>) -> tensor<4xf64>\nreturn %x', SQUARE),
        "func.call of @square has operands or results that do not match the function",
    ),
    "a function that does not return what its type says": (
        main("%a = call @square %x\nreturn %a", SQUARE.replace("-> tensor<4xf32>", "-> tensor<4xf64>", 1)),
        "@square has arguments or returned values that do not match its function type",
    ),
    "a composite without a decomposition": (
        main('%a = composite %x {name = "my.square", decomposition = @there}\nreturn %a', SQUARE),
        "stablehlo.composite refers to @there, but the module has no function with this name",
    ),
    "a use before the definition": (
        main("%b = tanh %a\n%a = sine %x\nreturn %b"),
        "operand 0 of stablehlo.tanh is used before its definition",
    ),
    "an attribute that is also a property": (
        main('%a = "stablehlo.iota"() <{dim = 0 : i64}> {dim = 1 : i64} : () -> tensor<4xf32>\nreturn %a'),
        "stablehlo.iota has both an attribute and a property named 'dim'",
    ),
    "a symbol in a function": (
        main('"other.function"() {sym_name = "square"} : () -> ()\nreturn %x', SQUARE),
        "other.function defines a symbol inside another operation; the proof supports symbols only at the top level",
    ),
    "a module in a function": (
        main("builtin.module {}\nreturn %x"),
        "the proof does not support modules inside other operations",
    ),
    "a barrier with results of other types": (
        main(
            '%a = "stablehlo.optimization_barrier"(%x) : (tensor<4xf32>) -> tensor<4xf64>\n'
            '%b = "stablehlo.convert"(%a) : (tensor<4xf64>) -> tensor<4xf32>\nreturn %b'
        ),
        "stablehlo.optimization_barrier must return each of its operands, in order and with the same types",
    ),
    "several blocks in a region": (
        main(
            f'%a = "stablehlo.case"(%x) ({{\n"stablehlo.return"(%x) : ({T}) -> ()\n'
            f'^a:\n"stablehlo.return"(%x) : ({T}) -> ()\n}}) : ({T}) -> {T}\nreturn %a'
        ),
        "stablehlo.case has a region with 2 blocks; the proof supports only regions with one block",
    ),
    "a block that branches to itself": (
        main('"other.loop"() ({\n^a:\n"cf.br"() [^a] : () -> ()\n}) : () -> ()\nreturn %x'),
        "cf.br branches to another block; the proof supports only regions with one block",
    ),
    "two functions of one name": (main("return %x", main("return %y")), "two functions are named @main"),
    "a function without a name": (function(NOTHING), "a function has no name"),
    "attributes of an argument that is not there": (
        function(f'sym_name = "main", arg_attrs = [{{}}], {NOTHING}'),
        "'arg_attrs' must be a list of 0 dictionaries, one for each position",
    ),
    "attributes of a result that are no dictionary": (
        function(f'sym_name = "main", res_attrs = "a", {NOTHING}'),
        "'res_attrs' must be a list of 0 dictionaries, one for each position",
    ),
    "a function that does not take what its type says": (
        function('sym_name = "main", function_type = (f64) -> ()', "^a(%x: f32):\n"),
        "@main has arguments or returned values that do not match its function type",
    ),
    "a function whose type is none": (
        main(
            "%a = call @p %x\nreturn %a",
            function(f"{PRIVATE}, function_type = i32", f"^a(%p: {T}):\n", f"func.return %p : {T}"),
        ),
        "@p has arguments or returned values that do not match its function type",
    ),
    "a return that holds operations": (
        main(f'"func.return"(%x) ({{\n"other.op"() : () -> ()\n}}) : ({T}) -> ()'),
        "@main has arguments or returned values that do not match its function type",
    ),
    "a return that branches": (
        f'"func.func"() <{{sym_name = "main", function_type = ({T}) -> {T}}}> '
        f'({{\n^a(%x: {T}):\n"func.return"(%x) [^a] : ({T}) -> ()\n}}) : () -> ()',
        "func.return branches to another block; the proof supports only regions with one block",
    ),
    "the end of a region that branches": (
        main(
            f'%a = "stablehlo.map"(%x) ({{\n^a:\n"stablehlo.return"(%x) [^a] : ({T}) -> ()\n}}) : ({T}) -> {T}\n'
            "return %a"
        ),
        "stablehlo.return branches to another block; the proof supports only regions with one block",
    ),
    "a public function without a type": (
        '"func.func"() <{sym_name = "main"}> ({\n"func.return"() : () -> ()\n}) : () -> ()',
        "@main has no function type",
    ),
    "a public function without a body": (
        f"func.func @there({T}) -> {T}",
        "the program has no public function to compare",
    ),
    "nothing that can be called": (private("p", "return %p"), "the program has no public function to compare"),
    "a function that never returns": (
        function(f'sym_name = "main", {NOTHING}', body='"other.op"() : () -> ()'),
        "@main has arguments or returned values that do not match its function type",
    ),
    "a function in a function": (
        main("func.func @inner() {\nfunc.return\n}\nreturn %x"),
        "func.func defines a symbol inside another operation; the proof supports symbols only at the top level",
    ),
    "a call of nothing": (
        main(f'%a = "func.call"(%x) : ({T}) -> {T}\nreturn %x'),
        "func.call does not name a function at the top level of the module",
    ),
    "a call into a module": (
        main(f'%a = "func.call"(%x) <{{callee = @a::@square}}> : ({T}) -> {T}\nreturn %x', SQUARE),
        "func.call does not name a function at the top level of the module",
    ),
    "a call of a function that is not there": (
        main("%a = call @there %x\nreturn %x"),
        "func.call refers to @there, but the module has no function with this name",
    ),
    "a type whose text refers to something": (
        main('%a = "other.op"() : () -> !other.type<#alias>\nreturn %x'),
        "other.op has a type that cannot be compared",
    ),
    "a barrier with a region": (
        main(f'%a = "stablehlo.optimization_barrier"(%x) ({{\n"other.op"() : () -> ()\n}}) : ({T}) -> {T}\nreturn %a'),
        "stablehlo.optimization_barrier must return each of its operands, in order",
    ),
    "a barrier that keeps a value to itself": (
        main(f'%a = "stablehlo.optimization_barrier"(%x, %y) : ({T}, {T}) -> {T}\nreturn %a'),
        "stablehlo.optimization_barrier must return each of its operands, in order",
    ),
    "a depend without a token": (
        main(f'%a = "recompute.depend"(%x) : ({T}) -> {T}\nreturn %a'),
        "recompute.depend must return each of its operands, in order",
    ),
    "a group that does not end with its yield": (main(GROUP.replace("recompute.yield", "stablehlo.return")), NO_YIELD),
    "a group with fewer results than it has": (main(GROUP.replace(f"(%b) : ({T})", "() : ()")), NO_YIELD),
    "a group with more results than it has": (
        main(GROUP.replace(f"(%b) : ({T})", f"(%b, %b) : ({T}, {T})")),
        NO_YIELD,
    ),
    "a group with operands": (main(GROUP.replace('t"()', 't"(%x)').replace("}) : ()", f"}}) : ({T})")), NO_YIELD),
    "a group with arguments": (main(GROUP.replace("({\n", f"({{\n^a(%k: {T}):\n")), NO_YIELD),
    "a group without operations": (main('"recompute.segment"() ({\n^a:\n}) : () -> ()\nreturn %x'), NO_YIELD),
    "a function without operations": (
        main('"func.call"() <{callee = @p}> : () -> ()\nreturn %x', function(f"{PRIVATE}, {NOTHING}", "^a:\n", "")),
        "@p has arguments or returned values that do not match its function type",
    ),
    "an empty group": (
        main('"recompute.segment"() ({\n}) : () -> ()\nreturn %x'),
        "recompute.segment has no body; the proof needs one region with one block",
    ),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_programs_of_undetermined_meaning_are_refused(rule: str) -> None:
    """The program is refused even against itself with a private function added to either side."""
    text, reason = REFUSED[rule]
    more = f"{text}\n{private('nobody', 'return %p')}"
    for before, after in ((text, more), (more, text)):
        proof = compare(before, after)
        assert not proof.proved
        assert reason in proof.reason
        assert "the original program cannot be compared" in proof.reason


@pytest.mark.parametrize("rule", REFUSED)
def test_identical_text_is_proved_even_if_refused(rule: str) -> None:
    module = load(REFUSED[rule][0])
    proof = prove(module, module.clone(), ProofOptions(one_source=True))
    assert proof.proved and proof.identical
    assert not prove(module, module.clone()).proved, "text alone does not say what its names stand for"


def test_region_value_read_outside_is_refused() -> None:
    module = load(main("%a = while %x (%i) {\n%j = tanh %i\n} yield %j\nreturn %y"))
    ops = {name_of(op): op for op in module.walk()}
    ops["func.return"].operands = ops["stablehlo.tanh"].results
    other = load(main("return %y"))
    assert "operand 0 of func.return is used before its definition" in prove(module, other).reason


def test_refusal_names_the_side_and_the_position() -> None:
    refused = main(
        '%a = "func.call"(%x, %y) <{callee = @main}> : (T, T) -> T loc("a.py":3:4)\nreturn %a'.replace("T", T)
    )
    proof = compare(main("return %x"), refused)
    assert proof.reason == (
        "the rewritten program cannot be compared at a.py:3:4: @main calls itself; the proof does not support recursion"
    )
