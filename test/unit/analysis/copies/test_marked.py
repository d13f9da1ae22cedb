"""Effect of marks in the input: views and casts are recomputed too, constants and returned values are not."""

from __future__ import annotations

import pytest

from recompute.dialects.names import Names
from recompute.mlir_io.parser import parse_module
from recompute.support.operations import name_of
from recompute.transforms.clone import clone

T = "tensor<4xf32>"
MARK = "recompute.recompute = true"
FORWARD, BACKWARD = 'recompute.phase = "primal"', 'recompute.phase = "gradient"'


def copied(*forward: str, read: str, type_: str = T, returned: str = "%y") -> list[str]:
    """Return the operations that are copied in a step whose gradient reads `read`."""
    lines = "\n".join(f"  {line}" for line in forward)
    module = parse_module(f"""
func.func @f(%x: {T}, %n: tensor<4xi32>, %i: tensor<i32>, %ct: {T}) -> ({T}, {T}) {{
{lines}
  %y = stablehlo.negate %x {{{FORWARD}}} : {T}
  %g = stablehlo.multiply %ct, %y {{{BACKWARD}}} : {T}
  %h = "test.read"(%g, {read}) {{{BACKWARD}}} : ({T}, {type_}) -> {T}
  func.return {returned}, %h : {T}, {T}
}}
""")
    clone(module)
    return [name_of(op).partition(".")[2] for op in module.walk() if Names.COPY in op.attributes]


SINE = f"%a = stablehlo.sine %x {{{MARK}, {FORWARD}}} : {T}"
NOT = f"%a = stablehlo.not %n {{{MARK}, {FORWARD}}} : tensor<4xi32>"


@pytest.mark.parametrize(
    ("source", "cast", "type_"),
    [
        (T, "stablehlo.convert", "tensor<4xbf16>"),
        (T, "arith.truncf", "tensor<4xbf16>"),
        (T, "arith.extf", "tensor<4xf64>"),
        ("tensor<4xi32>", "arith.trunci", "tensor<4xi8>"),
        ("tensor<4xi32>", "arith.extsi", "tensor<4xi64>"),
        ("tensor<4xi32>", "arith.extui", "tensor<4xi64>"),
    ],
)
def test_casts_are_recomputed_with_their_operand(source: str, cast: str, type_: str) -> None:
    """A cast is recomputed with its operand, since keeping its result would save no memory."""
    value, name = (SINE, "sine") if source == T else (NOT, "not")
    view = f'%v = "{cast}"(%a) {{{FORWARD}}} : ({source}) -> {type_}'
    assert copied(value, view, read="%v", type_=type_) == [name, cast.partition(".")[2]]


@pytest.mark.parametrize("message", ["recompute.recompute = false", "recompute.checkpoint"])
def test_view_with_conflicting_attribute_is_kept(message: str) -> None:
    view = f"%v = stablehlo.reshape %a {{{message}, {FORWARD}}} : ({T}) -> tensor<2x2xf32>"
    assert copied(SINE, view, read="%v", type_="tensor<2x2xf32>") == []


def test_constants_are_never_copied() -> None:
    constant = f"%k = stablehlo.constant {{{MARK}, {FORWARD}}} dense<1.0> : {T}"
    add = f"%b = stablehlo.add %a, %k {{{MARK}, {FORWARD}}} : {T}"
    assert copied(SINE, constant, add, read="%b") == ["sine", "add"]


@pytest.mark.parametrize(("returned", "copies"), [("%y", ["case"]), ("%w#0", [])])
def test_returned_result_is_not_recomputed(returned: str, copies: list[str]) -> None:
    case = f"""%w:2 = "stablehlo.case"(%i) ({{
      stablehlo.return %x, %y0 : {T}, {T}
    }}) {{{MARK}, {FORWARD}}} : (tensor<i32>) -> ({T}, {T})"""
    first = f"%y0 = stablehlo.tanh %x {{{FORWARD}}} : {T}"
    assert copied(first, case, read="%w#0", returned=returned) == copies
