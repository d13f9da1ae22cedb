"""Locations in diagnostics: a position in the source, or else the function and the operation."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from recompute.dialects.stablehlo import STABLEHLO
from recompute.mlir_io.parser import parse_module
from recompute.support.diagnostics import Refusal
from recompute.support.remarks import Remark, RemarkKind, Topic, tell

TEXT = """\
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = stablehlo.tanh %x : tensor<4xf32>
  %0 = stablehlo.sine %y : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
"""


def stock_context() -> Context:
    context = Context()
    for dialect in (Builtin, Func, STABLEHLO):
        context.load_dialect(dialect)
    return context


def test_message_without_position_names_operation(capsys: pytest.CaptureFixture[str]) -> None:
    """A diagnostic names the function and the operation if stock xDSL provides no position."""
    module = Parser(stock_context(), TEXT, "step.mlir").parse_module()
    function, named, unnamed = list(module.walk())[1:4]
    tell(
        stock_context(), [Remark(op, f"kept {number}") for number, op in enumerate((module, function, named, unnamed))]
    )
    assert capsys.readouterr().err.splitlines() == [
        "<unknown>: remark: kept 0",
        "@step: remark: kept 1",
        "@step (stablehlo.tanh %y): remark: kept 2",
        "@step (stablehlo.sine): remark: kept 3",
    ]
    assert str(Refusal(named, "no")) == "@step (stablehlo.tanh %y): error: no"


def test_message_with_position_starts_with_position() -> None:
    _, function, named, _ = list(parse_module(TEXT, "step.mlir").walk())[:4]
    assert str(Remark(named, "kept")) == "step.mlir:2:8: remark: kept"
    assert str(Refusal(function, "no")) == "step.mlir:1:1: error: no"


def test_repr_of_a_remark_is_one_short_line() -> None:
    """The representation names the position, and does not contain the text of the operation."""
    module, _, named, _ = list(parse_module(TEXT, "step.mlir").walk())[:4]
    assert repr(Remark(named, "kept", topic=Topic.NO_EFFECT)) == "<missed remark, no-effect at step.mlir:2:8: kept>"
    assert repr(Remark(module, "kept", RemarkKind.ANALYSIS)) == "<analysis remark at step.mlir:1:1: kept>"
