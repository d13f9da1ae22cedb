"""Names by which a user may refer to an operation."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation

from recompute.analysis.request.value_names import is_named, matches_of, names_of
from recompute.analysis.step.order import functions_of, single_block
from recompute.mlir_io.parser import parse_module

T = "tensor<4xf32>"


def operations() -> list[Operation]:
    module = parse_module(f"""
func.func @f(%x: {T}) -> {T} {{
  %h0 = stablehlo.tanh %x {{recompute.name = "first"}} : {T} loc("jit(f)/jvp(block0)/attn/tanh")
  %h1 = stablehlo.sine %h0 : {T} loc("jit(f)/jvp(block1)/sin")
  func.return %h1 : {T}
}}
""")
    return list(single_block(functions_of(module)[0]).ops)[:2]


def test_most_specific_name_comes_first() -> None:
    tanh, sine = operations()
    assert names_of(tanh) == ("first", "%h0", "h0", "stablehlo.tanh", "block0/attn/tanh", "attn/tanh", "tanh")
    assert names_of(sine) == ("%h1", "h1", "stablehlo.sine", "block1/sin", "sin")


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("first", [0]),
        ("h1", [1]),
        ("%h1", [1]),
        ("h*", [0, 1]),
        ("block?/sin", [1]),
        ("%h[01]", [0, 1]),
        ("block0/attn", []),
        ("*attn", []),
    ],
)
def test_patterns_match_the_expected_operations(pattern: str, named: list[int]) -> None:
    listed = operations()
    assert matches_of(listed, [pattern, "nobody"]) == {pattern: [listed[index] for index in named], "nobody": []}
    assert [index for index, op in enumerate(listed) if is_named(op, [pattern])] == named


def test_an_operation_may_have_several_names() -> None:
    tanh, _ = operations()
    tanh.attributes["recompute.name"] = ArrayAttr([StringAttr("outer"), StringAttr("first")])
    assert names_of(tanh)[:3] == ("outer", "first", "%h0")
    assert matches_of([tanh], ["first", "out*"]) == {"first": [tanh], "out*": [tanh]}


def test_empty_patterns_match_nothing() -> None:
    assert not any(is_named(op, []) for op in operations())
