"""Marks that cost work and lower no peak cause one remark, in place of those on unnamed segments."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import RecomputeOptions
from recompute.rewriting.rewrite import rewrite_in_place
from recompute.rewriting.summary import summary_of

T = "tensor<256xf32>"


def remarks(marked: str) -> tuple[list[str], list[str]]:
    """Return the remarks on a step, and its summary. `marked`: the names of the marked operations."""
    names = ("sin", "exp", "tanh", "cos")
    forward = [
        f"  %{i + 1} = math.{name} %{i} {{{'recompute.recompute = true' if name in marked.split() else ''}}} : {T}"
        for i, name in enumerate(names)
    ]
    operands = (("ct", 3), ("g3", 2), ("g2", 1))
    backward = [
        f'  %g{value} = arith.mulf %{cotangent}, %{value} {{recompute.phase = "gradient"}} : {T}'
        for cotangent, value in operands
    ]
    head = f"func.func @step(%0: {T}, %ct: {T}) -> ({T}, {T}) {{"
    module = parse_module("\n".join([head, *forward, *backward, f"  func.return %4, %g1 : {T}, {T}", "}"]))
    outcome = rewrite_in_place(module, RecomputeOptions(target="none"))
    return [remark.reason for remark in outcome.remarks], [remark.reason for remark in summary_of(module, outcome)]


def test_marks_that_lower_no_peak_cause_one_remark() -> None:
    (remark,), summary = remarks("sin exp")
    assert remark.startswith("the marked operations cost 512 FLOPs more and lower no peak: remove the marks, or also ")
    assert summary == []


@pytest.mark.parametrize("marked", [""])
def test_other_steps_get_no_such_remark(marked: str) -> None:
    texts, _ = remarks(marked)
    assert texts and not any("lower no peak" in text for text in texts)
