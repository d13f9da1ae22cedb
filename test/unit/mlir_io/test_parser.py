"""Every syntax error is a `ParseError` that points into the text."""

from __future__ import annotations

import random
import re
from contextlib import suppress
from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError

from recompute.driver.verification.verified import verify_module
from recompute.mlir_io.parser import ModuleParser, parse_module
from recompute.mlir_io.printer import print_module

SMALL = (Path(__file__).parents[3] / "examples" / "stablehlo" / "chain.small.mlir").read_text()


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("", "t:1:1", "the file is empty: expected an operation, such as 'builtin.module'"),
        ("// nothing\n\n  // here", "t:3:10", "the file is empty"),
        ("#loc = loc(unknown)\n", "t:2:1", "expected an operation, such as"),
        ("hello world", "t:1:1", "unknown operation 'hello': only its generic form can be parsed"),
        ("module {\n  func.func @f() {\n    return\n  }\n", "t:5:1", "expected an operation, a block or '}'"),
        (
            "module {\n  %0 = stablehlo.sinne %x : f32\n}",
            "t:2:8",
            "unknown operation 'stablehlo.sinne'; did you mean 'stablehlo.sine'\\? If not, only its generic form",
        ),
        ("%0 = stabelhlo.sine %x : f32", "t:1:6", "did you mean 'stablehlo.sine'\\?"),
        ("%0 = arith.adf %x : f32", "t:1:6", "did you mean 'arith.addf'\\?"),
        (
            "%0 = stablehlo.fold_paper %x : f32",
            "t:1:6",
            "unknown operation 'stablehlo.fold_paper': only its generic",
        ),
        (
            "func.func @f(%c: i1) {\n  cf.cond_br %c, ^a, ^a\n^a:\n  return\n}",
            "t:2:3",
            "'cf.cond_br' branches between blocks, but only functions with one block are supported",
        ),
        ("module {\n  %0 = acme.swish %x : f32\n}", "t:2:8", "unknown operation 'acme.swish'"),
        (
            "func.func @f(%x: tensor<4xf32>) {\n  %0:2 = chlo.top_k(%x, k = 5) : tensor<4xf32> -> tensor<5xf32>\n}",
            "t:2:51",
            "'\\(' expected",
        ),
        ('sdy.mesh @m = <["a"=2)>', "t:1:22", "Expected ']'"),
        (
            "shape.shape_of %0 : tensor<4xf32>",
            "t:1:1",
            "unknown operation 'shape.shape_of': only its generic form can be parsed; print it with mlir-opt",
        ),
        (
            "func.func @f() {\n  %0 = stablehlo.tanh %x : tensor<4xf32>\n  return\n}",
            "t:2:23",
            "%x is used but not defined",
        ),
        ("func.func @f() {\n  ^0(:\n}", "t:2:5", "Invalid Block name"),
        ("func.func @f() {\n  \freturn\n}", "t:2:3", "Unexpected character: \f"),
        ('"foo.x"() {op_name__ = "a"} : () -> ()', "t:1:12", "an attribute must not have the name 'op_name__'"),
        ('"foo.x"() <{op_name__}> : () -> ()', "t:1:13", "an attribute must not have the name 'op_name__'"),
        ('"foo.x\\n"() : () -> ()', "t:1:10", "the name of an operation must consist of letters, digits"),
        ("module {\n  \x00\n}", "t:2:3", "[Uu]nexpected character"),
        ("%0 = stablehlo.constant dense<1.0> : tensor<4x4>", "t:1:48", "shape delimiter"),
        ("%0 = stablehlo.iota dim = 0 {iota_dimension = 1} : tensor<4xi32>", "t:1:29", "belongs in the format"),
        ("%0 = stablehlo.constant 7 : i32", "t:1:25", "expected the value of the constant"),
        (
            "func.func @f(%x: tensor<4xf32>) {\n  %0 = stablehlo.reduce_precision %x, format = e5m2147483648 : f32\n}",
            "t:2:48",
            "2147483648 does not fit in 32 bits",
        ),
        ("%0 = stablehlo.iota dim = 9223372036854775808 : tensor<4xi32>", "t:1:27", "does not fit in 64 bits"),
        (
            "%0 = stablehlo.constant dense<1.0> : tensor<f32>\n"
            "%1 = stablehlo.reduce(%0 init: %0) applies stablehlo.divide across dimensions = [] : (f32) -> f32",
            "t:2:44",
            "expected one of stablehlo.add",
        ),
        (
            '"test.op"() {a = #stablehlo.dot<lhs = [0]>} : () -> ()',
            "t:1:33",
            "one of the entries lhs_batching_dimensions",
        ),
        (
            '"test.op"() {a = #stablehlo.gather<index_vector_dim = [0]>} : () -> ()',
            "t:1:55",
            "Expected integer literal",
        ),
        ('"test.op"() {a = #stablehlo<precision LOW>} : () -> ()', "t:1:39", "Expected `DEFAULT`"),
    ],
)
def test_syntax_errors_point_into_the_text(text: str, position: str, words: str):
    with pytest.raises(ParseError, match=words) as error:
        parse_module(text, "t")
    assert str(error.value).startswith(position + "\n")


@pytest.mark.parametrize("depth", [400, 5000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a = ", "}")])
def test_deep_nesting_is_a_parse_error(opening: str, closing: str, depth: int):
    """Nesting deeper than Python's recursion limit is a `ParseError`."""
    text = f'"test.op"() {{a = {opening * depth}{closing * depth}}} : () -> ()'
    with pytest.raises(ParseError):
        parse_module(text)


def test_nesting_error_states_the_limit():
    levels = 400
    text = '"any.op"() ({\n' * levels + '"any.op"() : () -> ()\n' + "}) : () -> ()\n" * levels
    with pytest.raises(ParseError, match=r"too deeply for Python's recursion limit of \d+; open operations: \d\d+"):
        parse_module(text)


def test_every_truncation_is_a_parse_error():
    whole = SMALL.rindex("\n}") + len("\n}")
    for end in range(0, whole, 97):
        with pytest.raises(ParseError):
            parse_module(SMALL[:end])


def test_damaged_text_is_a_parse_error_or_a_program():
    """A text with randomly removed, duplicated or replaced parts gives a program or a `ParseError`."""
    dice = random.Random(0)
    for _ in range(150):
        start = dice.randrange(len(SMALL))
        end = start + dice.choice([1, 1, 5, 40])
        filling = dice.choice(["", "", "%", "<", "]", '"', "0x", "é", "#loc", SMALL[start:end] * 2])
        with suppress(ParseError):
            parse_module(SMALL[:start] + filling + SMALL[end:])


def test_types_are_shared():
    """Equal types are parsed to the same object."""
    text = "%0 = stablehlo.iota dim = 0 : tensor<4xf32>"
    first, other = parse_module(f"{text}\n{text.replace('%0', '%1')}").ops
    assert first.results[0].type is other.results[0].type


def test_resource_with_taken_name_keeps_its_content():
    weights = '"0x04000000000000000000000000000000"'
    use = '"foo.x"() {k = dense_resource<weights> : tensor<4xf32>} : () -> ()'
    text = (
        f"{use}\n{use}\n{{-#\n  dialect_resources: {{\n    builtin: {{\n      weights: {weights}\n    }}\n  }}\n#-}}\n"
    )
    for _ in range(3):
        printed = print_module(parse_module(text))
        assert printed.count(weights) == 1
        (name,) = set(re.findall(r"dense_resource<(\w+)>", printed))
        assert f"{name}: {weights}" in printed


@pytest.mark.parametrize(
    "blob", ['"0x04000000\\n00000000"', '"0x04000000 00000000"', '"0x0400000000000000', '"04000000"']
)
def test_digits_of_a_resource_must_be_in_one_string(blob: str):
    use = '"foo.x"() {k = dense_resource<weights> : tensor<1xf32>} : () -> ()'
    with pytest.raises(ParseError, match="a string of hexadecimal digits"):
        parse_module(f'{use}\n{{-# dialect_resources: {{ builtin: {{ "weights": {blob} }} }} #-}}')


@pytest.mark.parametrize("visibility", ["", "private "])
@pytest.mark.parametrize("name", ["@f", '@"f g"', '@"a\\22("'])
def test_declaration_argument_attributes_are_kept(visibility: str, name: str):
    text = f'func.func {visibility}{name}(f32, f64 {{foo.x = "a"}} loc("p"), (f32) -> f32) -> (f32 {{foo.y}})\n'
    printed = print_module(parse_module(text + "func.func private @g()\n"), generic=True)
    assert 'arg_attrs = [{}, {foo.x = "a"}, {}]' in printed
    assert "res_attrs = [{foo.y}]" in printed
    assert '"g"' in printed


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize(
    "text",
    ['"foo.x"() {a = "é", b = @"é", "é" = "\\C3\\A9"} : () -> ()', 'module @"é" {\n}', 'func.func private @"é\\22"()'],
)
def test_non_ascii_text_round_trips(text: str, generic: bool):
    module = parse_module(text)
    again = parse_module(print_module(module, generic=generic))
    assert module.is_structurally_equivalent(again)
    verify_module(again)


def test_non_text_bytes_round_trip():
    module = parse_module('"foo.x"() {a = "\\FF"} : () -> ()')
    assert print_module(parse_module(print_module(module))).count('a = "\\FF"') == 1


@pytest.mark.parametrize("name", ["foo.x", "stablehlo.composite", "func.call"])
def test_nested_dictionaries_are_no_operation_attributes(name: str):
    properties = "<{callee = @f, composite_attributes = {a = 1 : i32}}> {b = {c}}"
    text = f'func.func private @f()\n"{name}"() {properties} : () -> ()'
    printed = print_module(parse_module(text), generic=True)
    assert "{a = 1 : i32}" in printed and "b = {c}" in printed


def test_an_elided_resource_has_the_same_name_in_all_texts():
    use = '"foo.x"() {k = dense_resource<__elided__> : tensor<4xf32>} : () -> ()'
    for _ in range(2):
        assert "dense_resource<__elided__>" in print_module(parse_module(use))


def test_a_text_of_aliases_alone_is_an_empty_module():
    module = parse_module("!pair = tuple<f32, f32>\n#one = 1 : i32\n")
    assert not list(module.ops)
    with pytest.raises(ParseError, match="expected an operation, such as"):
        parse_module("!pair = tuple<f32, f32>\n)")


def test_error_of_an_xdsl_constructor_becomes_a_parse_error() -> None:
    """The `ValueError` of xDSL for an unknown iterator type becomes a `ParseError`."""
    maps = "affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>"
    text = (
        f'%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["paralel"]}} '
        "ins(%x : tensor<4xf32>) outs(%x : tensor<4xf32>) { ^bb0(%a: f32, %b: f32): linalg.yield %a : f32 }"
    )
    with pytest.raises(ParseError, match="malformed input: 'paralel' is not a valid IteratorType"):
        parse_module(text)


def test_error_that_does_not_come_from_the_text_is_not_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(parser: ModuleParser) -> None:
        raise MemoryError

    monkeypatch.setattr(ModuleParser, "parse_operation", fail)
    with pytest.raises(MemoryError):
        parse_module('"a.b"() : () -> ()')
