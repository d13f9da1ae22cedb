"""Segments stated in the step are combined with options, and used where no option is given."""

from __future__ import annotations

import pytest

from recompute.analysis.request.checkpoints import OVERRIDDEN
from recompute.mlir_io.parser import parse_module
from recompute.mlir_io.printer import print_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.rewriting.rewrite import rewrite_in_place

T = "tensor<1024xf32>"
STEP = f"""
func.func public @main(%x: {T}, %ct: {T}) -> ({T}, {T}) attributes {{recompute.checkpoints = ["h0"]}} {{
  %a = stablehlo.sine %x : {T} loc("jit(f)/jvp(NAME)/sin")
  %b = stablehlo.cosine %a : {T} loc("jit(f)/jvp(NAME)/cos")
  %h0 = stablehlo.tanh %b : {T} loc("jit(f)/jvp(NAME)/tanh")
  %y = stablehlo.exponential %h0 : {T} loc("jit(f)/jvp(rest)/exp")
  %f = stablehlo.multiply %ct, %y : {T} loc("jit(f)/transpose(jvp())/mul")
  %g = stablehlo.multiply %f, %h0 : {T} loc("jit(f)/transpose(jvp())/mul")
  %i = stablehlo.multiply %g, %b : {T} loc("jit(f)/transpose(jvp())/mul")
  %j = stablehlo.multiply %i, %a : {T} loc("jit(f)/transpose(jvp())/mul")
  func.return %y, %j : {T}, {T}
}}
"""


def rewritten_with(selection: Selection, name: str = "block") -> tuple[str, list[str]]:
    module = parse_module(STEP.replace("NAME", name))
    remarks = rewrite_in_place(module, RecomputeOptions(selection, target="none")).remarks
    return print_module(module), [remark.reason for remark in remarks]


def test_stated_checkpoints_cut_step_and_are_removed():
    text, remarks = rewritten_with(Selection())
    assert 'recompute.segment = "segment0"' in text and "recompute.checkpoints" not in text
    assert OVERRIDDEN not in remarks


@pytest.mark.parametrize("message", [{"segments": "block"}, {"checkpoints": ("b",)}])
def test_options_override_stated_segments_with_remark(message: dict[str, str]):
    text, remarks = rewritten_with(Selection(**message))  # pyright: ignore[reportArgumentType]
    assert OVERRIDDEN in remarks
    assert "recompute.copy" in text


def test_marked_call_without_segments_is_a_segment():
    assert "recompute.copy" not in rewritten_with(Selection(segments="none"))[0]
    text, _ = rewritten_with(Selection(segments="none"), "recompute:piece@3")
    assert 'recompute.segment = "piece", recompute.id' in text
