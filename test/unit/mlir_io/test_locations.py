"""Locations of every form, aliases in any order, and positions in the text itself are read and printed."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import ParseError

from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.support.locations import file_range, source_position
from recompute.test.mlir_judge import Judge


def file_location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def named(name: str, location: LocationAttr | NoneAttr | None = None) -> NameLoc:
    return NameLoc(StringAttr(name), location or NoneAttr())


def function(module: ModuleOp) -> FuncOp:
    (op,) = module.ops
    assert isinstance(op, FuncOp)
    return op


def read(location: str, *, definitions: str = "") -> LocationAttr:
    return function(parse_module(f"module {{\n  func.func private @f() loc({location})\n}}\n{definitions}")).location


FORMS: list[tuple[str, LocationAttr]] = [
    ("unknown", UNKNOWN_LOC),
    ('"f.py":3:7', file_location("f.py", 3, 7)),
    ('"f.py":37:27 to :49', file_range("f.py", (37, 27), (37, 49))),
    ('"f.py":37:27 to 38:4', file_range("f.py", (37, 27), (38, 4))),
    ('"jit(step)/tanh"', named("jit(step)/tanh")),
    ('"x"("f.py":3:7)', named("x", file_location("f.py", 3, 7))),
    ('"x"("f.py":3:7 to :9)', named("x", file_range("f.py", (3, 7), (3, 9)))),
    ('callsite("a" at "f.py":1:2)', CallSiteLoc(named("a"), file_location("f.py", 1, 2))),
    (
        'callsite("a"("f.py":1:2 to :5) at "b")',
        CallSiteLoc(named("a", file_range("f.py", (1, 2), (1, 5))), named("b")),
    ),
    ('fused["a", "f.py":1:2]', FusedLoc((named("a"), file_location("f.py", 1, 2)), NoneAttr())),
    ('fused<"pass">["a", "b"]', FusedLoc((named("a"), named("b")), StringAttr("pass"))),
    ('"caf\\C3\\A9 \\22quoted\\22"', named('café "quoted"')),
]


@pytest.mark.parametrize(("text", "location"), FORMS, ids=[text for text, _ in FORMS])
def test_every_form_of_location_round_trips(text: str, location: LocationAttr, judge: Judge):
    """Locations, including locations in attributes, are read and printed as in MLIR."""
    assert read(text) == location
    module = parse_module(f"func.func private @f() loc({text})")
    assert read("#loc", definitions=f"#loc = loc({text})") == location
    theirs = judge.print(f"func.func private @f() loc({text})").partition("\n")[2]
    assert judge.print(print_module(module, debuginfo=True)).partition("\n")[2].startswith(theirs.partition("\n")[0])
    (again,) = (op for op in parse_module(print_module(module, debuginfo=True)).walk() if isinstance(op, FuncOp))
    assert again.location == location
    attribute = parse_module(f'"test.op"() {{where = loc({text})}} : () -> ()')
    assert f"where = loc({text})" in print_module(attribute, debuginfo=True)


def test_jax_reads_our_aliases_as_the_same_locations(judge: Judge):
    parts = "\n".join(f"  func.func private @f{index}() loc({text})" for index, (text, _) in enumerate(FORMS))
    text = f"module {{\n{parts}\n}} loc(unknown)"
    assert judge.print(print_module(parse_module(text), debuginfo=True)) == judge.print(text)


def test_short_forms_of_mlir_are_read():
    assert read('"f.py":5') == file_location("f.py", 5, 0)
    assert read('"f.py":5:2 to :2') == file_location("f.py", 5, 2)
    assert read('"f.py":0x10:4294967295') == file_location("f.py", 16, 4294967295)


def test_aliases_in_any_order():
    """Aliases may be defined before or after their use, in terms of earlier ones, and more than one on a line."""
    text = """
#third = loc("f.py":1:2) #first = loc("a"(#third))
module {
  func.func @f(%x: i32 loc(#second)) {
    return loc(#third)
  } loc(callsite(#first at #second))
} loc(#first)
#second = loc("b"(#third))
"""
    module = parse_module(text)
    op = function(module)
    third = file_location("f.py", 1, 2)
    assert module.location == named("a", third)
    assert op.args[0].location == named("b", third)
    assert op.location == CallSiteLoc(named("a", third), named("b", third))
    assert op.body.block.last_op is not None and op.body.block.last_op.location == third


def test_location_objects_are_shared():
    module = parse_module('func.func private @f() loc("a"("f.py":1:2))\nfunc.func private @g() loc("a"("f.py":1:2))')
    f, g = module.ops
    assert f.location is g.location


def test_aliases_in_strings_and_comments_are_ignored():
    """Aliases in strings and comments are ignored."""
    module = parse_module(
        '// #loc = loc("no")\nmodule attributes {a = "#loc = loc(\\22no\\22)"} {} loc(#loc)\n#loc = loc("yes")'
    )
    assert module.location == named("yes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("module {} loc(#nowhere)", "undefined location alias '#nowhere'"),
        ('module {} loc(#a)\n#a = loc("x"(#b))\n#b = loc("y"(#a))', "undefined location alias '#b'"),
        ('module {} loc(#a)\n#a = loc("x"(#a))', "undefined location alias '#a'"),
        ('module {}\n#a = loc("x")\n#a = loc("y")', "alias '#a' is defined more than once"),
        ("#a = 3 : i32\nmodule {} loc(#a)", "the alias '#a' does not define a location"),
        ("module {} loc(elsewhere)", "expected a location"),
        ('module {} loc("f.py":1:2 to)', "Expected integer literal"),
        ('module {} loc("f.py":1:2', "Expected '\\)'"),
        ('module {} loc("\\FF")', "UTF-8"),
        ('module {} loc("f.py":4294967296:1)', "exceeds the maximum, 4294967295"),
        ('module {} loc("f.py":1:4294967296)', "exceeds the maximum, 4294967295"),
        ('module {} loc("f.py":1:1 to 4294967296:1)', "exceeds the maximum, 4294967295"),
        ('module {} loc(#a\v)\n#a = loc("x")', "[Uu]nexpected character"),
        ('module {} loc\f("x")', "[Uu]nexpected character"),
    ],
)
def test_invalid_locations_are_rejected(text: str, words: str):
    with pytest.raises(ParseError, match=words):
        parse_module(text)


TEXT = """module {
  func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
    %y, %z = "stablehlo.optimization_barrier"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %c = stablehlo.constant dense<1.0> : tensor<f32> loc(unknown)
    %r = stablehlo.reduce(%x init: %c) applies stablehlo.add
      across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %y, %r : tensor<4xf32>, tensor<f32> loc("end")
  }
}"""


def test_missing_location_is_position_in_text():
    """An operation without a location is located at its name in the text; an explicit unknown location stays
    unknown."""
    places = {op.name: op.location for op in parse_module(TEXT, "in.mlir").walk()}
    assert places["builtin.module"] == file_location("in.mlir", 1, 1)
    assert places["func.func"] == file_location("in.mlir", 2, 3)
    assert places["stablehlo.optimization_barrier"] == file_location("in.mlir", 3, 14)
    assert places["stablehlo.constant"] == UNKNOWN_LOC
    assert places["stablehlo.reduce"] == file_location("in.mlir", 5, 10)
    assert places["func.return"] == named("end")


def test_the_short_form_of_a_reduction_is_all_in_one_place():
    """The operation that `applies` denotes has the location of the reduction."""
    for text in (TEXT, TEXT.replace("-> tensor<f32>\n    return", '-> tensor<f32> loc("sum")\n    return')):
        (reduce,) = (op for op in parse_module(text, "in.mlir").walk() if op.name == "stablehlo.reduce")
        assert {op.location for op in reduce.walk()} == {reduce.location}
        assert "applies stablehlo.add" in print_module(parse_module(text), debuginfo=True)


def test_locations_inside_a_reduction_are_kept():
    """A reduction is printed with its region if a location in the region differs."""
    module = parse_module(TEXT)
    (add,) = (op for op in module.walk() if op.name == "stablehlo.add")
    add.location = named("inside")
    assert "applies" in print_module(module)
    text = print_module(module, debuginfo=True)
    assert "applies" not in text
    (again,) = (op for op in parse_module(text).walk() if op.name == "stablehlo.add")
    assert again.location == named("inside")


def test_implicit_module_is_located_at_the_start():
    assert parse_module("\nfunc.func private @f()", "in.mlir").location == file_location("in.mlir", 1, 1)


def test_unknown_location_is_printed_as_unknown():
    module = parse_module("module {\n  func.func private @f() loc(unknown)\n} loc(unknown)")
    text = print_module(module, debuginfo=True)
    assert text.count("loc(unknown)") == 2 and "#loc" not in text


def test_locations_are_omitted_without_debug_information():
    assert "loc(" not in print_module(parse_module(TEXT))


def test_source_position_is_that_of_the_callee():
    """The position of a call site is the position of the callee, not the position of the caller."""
    deep = CallSiteLoc(named("tanh", file_range("model.py", (37, 27), (37, 49))), file_location("train.py", 5, 1))
    assert source_position(deep) == ("model.py", 37, 27)
    assert source_position(FusedLoc((named("a"), file_location("f.py", 1, 2)), NoneAttr())) == ("f.py", 1, 2)
    assert source_position(named("parameters[0]")) is None
    assert source_position(UNKNOWN_LOC) is None


def test_other_printers_still_write_valid_mlir(judge: Judge):
    """The output of xDSL's own printer, which does not know ranges, stays valid."""
    location = file_range("f.py", (3, 7), (3, 9))
    assert str(location) == 'loc(fused<"to 3:9">["f.py":3:7])'
    judge.print(f"module {{}} {location}")
