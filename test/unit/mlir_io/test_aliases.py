"""Aliases are defined once, read where they are used, and expanded inside attributes that are stored as text."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import StringAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.test.mlir_judge import Judge

FUNCTION = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @foo(%x) {mhlo.k = VALUE} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


def with_value(value: str) -> str:
    return FUNCTION.replace("VALUE", value)


def printed_value(text: str) -> str:
    """Return the printed attribute, and check that it is read again as itself."""
    once = print_module(parse_module(text))
    assert print_module(parse_module(once)) == once
    match = re.search(r"mhlo.k = (.*)\} : ", once, re.DOTALL)
    assert match is not None
    return match[1]


# Definitions, value, and how the value is printed: JAX's MLIR knows vhlo, we do not.
SPELLED: list[tuple[str, str, str]] = [
    ("!0 = !vhlo.i32_v1", "#vhlo.type_v1<!0>", "#vhlo.type_v1<!vhlo.i32_v1>"),
    ("#0 = #vhlo.type_v1<!vhlo.i32_v1>", "#vhlo.array_v1<[#0]>", "#vhlo.array_v1<[#vhlo.type_v1<!vhlo.i32_v1>]>"),
    (
        "!0 = !vhlo.i32_v1\n#0 = #vhlo.type_v1<!0> #12 = #vhlo.array_v1<[#0, #0]>",
        "[#12]",
        "[#vhlo.array_v1<[#vhlo.type_v1<!vhlo.i32_v1>, #vhlo.type_v1<!vhlo.i32_v1>]>]",
    ),
    (
        "!number = !vhlo.i32_v1 // the type\n#type // of\n = // a number\n #vhlo.type_v1<!number>",
        '#vhlo.array_v1<[#type, #vhlo.string_v1<"#type !number">]>',
        '#vhlo.array_v1<[#vhlo.type_v1<!vhlo.i32_v1>, #vhlo.string_v1<"#type !number">]>',
    ),
    ("!t = tensor<2x!e>", "!t", ""),
    ("!e = f32\n!t = tensor<2x!e>", "!t", "tensor<2xf32>"),
    ("#map = affine_map<(d0) -> (d0)>\n#a-b = [#map]\n#a$b = {k = #a-b}", "#a$b", "{k = [affine_map<(d0) -> (d0)>]}"),
    ("#a = 5 : i32\n!a = i32", "[#a, !a]", "[5 : i32, i32]"),
    ("#a = 5 : i32\n#b = #a", "#b", "5 : i32"),
]


@pytest.mark.parametrize(("definitions", "value", "printed"), [case for case in SPELLED if case[2]])
def test_alias_values_match_mlir(definitions: str, value: str, printed: str, judge: Judge):
    text = f"{definitions}\n{with_value(value)}"
    assert printed_value(text) == printed
    assert judge.print(print_module(parse_module(text)), debuginfo=False) == judge.print(text, debuginfo=False)


# In bodies of dialects that JAX does not know either.
@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("#foo.bar<#a, !a>", "#foo.bar<5 : i32, i32>"),
        ("#foo<bar #a>", "#foo<bar 5 : i32>"),
        ("!foo.bar<x#a>", "!foo.bar<x 5 : i32>"),
        ("#foo.bar<[{k = #a}, (#a) -> !a]>", "#foo.bar<[{k = 5 : i32}, (5 : i32) -> i32]>"),
        ('#foo.bar<"#a", "\\"#a", "#zz">', '#foo.bar<"#a", "\\"#a", "#zz">'),
        ("#foo.bar<#a.b, !a.b<!a>, #a<3>, !a  <#a>>", "#foo.bar<#a.b, !a.b<i32>, #a<3>, !a  <5 : i32>>"),
        ("#foo.bar<#l>", '#foo.bar<loc("x"("f.py":1:2))>'),
        ("#foo.bar<%0#1, %a>", "#foo.bar<%0#1, %a>"),
        ("#foo.bar<@a, @a::@b>", "#foo.bar<@a, @a::@b>"),
        ("!foo.bar<>", "!foo.bar<>"),
        ("#foo<bar<>>", "#foo.bar<>"),
        ("#foo.bar<#foo.bar<>, !foo.b = 1>", "#foo.bar<#foo.bar<>, !foo.b = 1>"),
    ],
)
def test_aliases_are_expanded_in_bodies_of_unknown_dialects(value: str, printed: str):
    definitions = '#a = 5 : i32\n!a = i32\n#p = loc("f.py":1:2)\n#l = loc("x"(#p))\n'
    assert printed_value(definitions + with_value(value)) == printed


def test_different_alias_definitions_give_different_programs():
    first, other = (f"!0 = !vhlo.{name}\n{with_value('#vhlo.type_v1<!0>')}" for name in ("i32_v1", "i64_v1"))
    assert print_module(parse_module(first)) != print_module(parse_module(other))


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("#a = 5 : i32\n#a = 6 : i32\nmodule {}", "2:1", "alias '#a' is defined more than once"),
        ("!a = i32\n!a = i32\nmodule {}", "2:1", "alias '!a' is defined more than once"),
        ('#a = loc("x")\nmodule {}\n#a = loc("y")', "3:1", "alias '#a' is defined more than once"),
        (f'#a = 5 : i32\n{with_value("1")}#a = loc("x")', "6:1", "alias '#a' is defined more than once"),
        (f'{with_value("1")}#a = 5 : i32\nfunc.func private @g()\n#a = loc("x")', "7:1", "is defined more than once"),
        (f'#a = loc("x")\n{with_value("1")}#a = 5 : i32\nfunc.func private @g()', "6:1", "is defined more than once"),
        (with_value("#map") + "#map = affine_map<(d0) -> (d0)>", "2:49", "undefined alias '#map'"),
        (with_value("#foo.bar<!t>") + "!t = i32", "2:58", "undefined alias '!t'"),
        (with_value("#foo.bar<[#zz]>"), "2:59", "undefined alias '#zz'"),
        (with_value("#foo<bar #zz>"), "2:58", "undefined alias '#zz'"),
        (with_value("#foo.bar<#loc>"), "2:58", "undefined alias '#loc'"),
        ("#a = [#a]\nmodule {}", "1:7", "undefined alias '#a'"),
        ("#a.b = 5 : i32\nmodule {}", "1:1", "'#a.b' contains a dot"),
        ("!a.b = i32\nmodule {}", "1:1", "'!a.b' contains a dot"),
        ("module {\n  #a = 5 : i32\n}", "2:3", "expected an operation"),
        (with_value("1").replace("%0 =", '#a = loc("x")\n  %0 ='), "2:3", "expected an operation"),
        (with_value('#foo.bar<#a = loc("x")>'), "2:58", "undefined alias '#a'"),
        (with_value('#foo.bar<"" // no comment\n>'), "2:61", "must not contain a comment"),
        (
            with_value("#foo.bar<dense_resource<a> : tensor<4xf32>>"),
            "2:58",
            "must not contain a resource",
        ),
        (
            "#a = affine_set<(d0) : (d0 >= 0)>\n" + with_value("#foo.bar<[#a]>"),
            "3:59",
            "must not contain '>=', because '>=' looks like its closing bracket",
        ),
        (with_value("#stablehlo<precision // }\n DEFAULT>"), "2:73", "Unbalanced '}'"),
        (
            with_value("#stablehlo<precision // >\n DEFAULT>"),
            "2:59",
            "a comment inside an attribute must not contain brackets",
        ),
        (with_value("!foo.bar<"), "2:58", "Unbalanced '}' in dialect symbol body"),
        (with_value("#foo <bar 1>"), "2:49", "undefined alias '#foo'"),
        (with_value("[!foo\n<bar>]"), "2:50", "undefined alias '!foo'"),
        (with_value("#foo.bar <1>"), "2:58", "'<' must directly follow the name '#foo.bar'"),
        (
            "#one = 1\n" + with_value("#stablehlo.channel_handle<handle = 1, type = #one>"),
            "3:94",
            "expected a number",
        ),
        ("#a\nmodule {}", "1:1", "or the definition of an alias"),
        ("#a = \nmodule {}", "2:1", "attribute expected"),
        ("!a = i5\nmodule {} !a", "2:11", "or the definition of an alias"),
        ("!a = 5\nmodule {}", "1:6", "type expected"),
        ("!a = {k = i32}\nmodule {}", "1:6", "type expected"),
    ],
)
def test_invalid_aliases_are_rejected(text: str, position: str, words: str):
    with pytest.raises(ParseError, match=words) as error:
        parse_module(text, "t")
    assert str(error.value).startswith(f"t:{position}\n")


def test_functions_between_alias_definitions_are_read():
    """All functions between two definitions are read, wherever the definitions are."""
    text = "".join(f'#a{index} = {index} : i32\nfunc.func private @f{index}() loc("{index}")\n' for index in range(5))
    functions = [op for op in parse_module(f'{text}#l = loc("x")\n').walk() if isinstance(op, FuncOp)]
    assert [op.sym_name for op in functions] == [StringAttr(f"f{index}") for index in range(5)]


def test_type_alias_is_expanded_inside_a_type():
    module = parse_module("!e = i32\n!t = tensor<4x!e>\nfunc.func private @f(!t, tensor<4x!e>, tuple<!e>)")
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    first, other, pair = function.function_type.inputs
    assert first == other and str(pair) == f"tuple<{i32}>"


def test_attribute_inside_unknown_attribute_is_not_an_alias():
    value = "#foo.kind<tensor<2xf32, #stablehlo<transpose NO_TRANSPOSE>>>"
    assert printed_value(with_value(value)) == value


def test_known_attribute_may_contain_comments(judge: Judge):
    text = with_value("#stablehlo<precision // <> \n HIGH> // >\n")
    assert judge.print(print_module(parse_module(text)), debuginfo=False) == judge.print(text, debuginfo=False)


@pytest.mark.parametrize("value", ["#foo.bar<a\n   b\n\n  c>", "#foo<bar\n  [a,\n  b]>", "[!foo.bar<{\n}>]"])
def test_opaque_attributes_keep_line_breaks(value: str):
    """Line breaks in opaque attributes are preserved at every depth, even if the text is printed repeatedly."""
    assert printed_value(with_value(value)) == value
    nested = '"test.a"() ({\n  "test.b"() ({\n    "test.c"() {k = VALUE} : () -> ()\n  }) : () -> ()\n}) : () -> ()'
    text = print_module(parse_module(nested.replace("VALUE", value)))
    assert value in text and print_module(parse_module(text)) == text


def test_sharding_over_several_lines_is_printed_on_one():
    value = '#sdy.sharding<@mesh, [{"a"},\n  {"b"}]>'
    assert printed_value(with_value(value)) == '#sdy.sharding<@mesh, [{"a"}, {"b"}]>'


def test_equals_sign_in_comment_defines_no_alias():
    functions = [f"func.func private @{name}(!t) -> !t\n\n" for name in "fg"]
    text = f"!t = f32\n{functions[0]}// !t = f64, u = k\n{functions[1]}// so d = e\n"
    assert print_module(parse_module(text)).count("(f32) -> f32") == 2
