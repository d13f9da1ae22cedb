"""Remarks on steps that stay unchanged beside loops or steps that are rewritten."""

from __future__ import annotations

from recompute.mlir_io.parser import parse_module
from recompute.search.choice.unchanged_steps import (
    UNCHANGED,
    remark_on_unchanged_step,
    reword_beside_rewritten,
    reword_for_cut_loops,
)
from recompute.support.remarks import Remark


def test_remark_is_reworded_only_once() -> None:
    """A second rewording does not change "the rest of the step" to "the rest of the rest"."""
    remark = remark_on_unchanged_step(parse_module("builtin.module {}", "step.mlir"), "little is saved")
    assert remark.reason == f"little is saved: {UNCHANGED}"
    (reworded,) = reword_for_cut_loops([remark])
    assert reworded.reason == "little is saved: the rest of the step is left as it is"
    assert reword_for_cut_loops([reworded]) == (reworded,)
    (beside,) = reword_beside_rewritten([reworded])
    assert beside.reason == "in the rest of the step: little is saved: the rest of the step is left as it is"


def test_segments_without_names_are_omitted_beside_a_rewritten_loop() -> None:
    module = parse_module("builtin.module {}", "step.mlir")
    numbered = Remark(module, "segment 'segment0' is not recomputed", segments=("segment0",))
    named = Remark(module, "segment 'block0' is not recomputed", segments=("block0",))
    assert [remark.segments for remark in reword_beside_rewritten([numbered, named])] == [("block0",)]
