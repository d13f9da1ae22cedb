"""Remarks on steps that stay unchanged beside loops or steps that are rewritten."""

from __future__ import annotations

from recompute.mlir_io.parser import parse_module
from recompute.search.unchanged_steps import (
    UNCHANGED,
    remark_on_unchanged_step,
    reword_beside_rewritten,
    reword_for_cut_loops,
)


def test_remark_is_reworded_only_once() -> None:
    """A second rewording does not change "the rest of the step" to "the rest of the rest"."""
    remark = remark_on_unchanged_step(parse_module("builtin.module {}", "step.mlir"), "little is saved")
    assert remark.reason == f"little is saved: {UNCHANGED}"
    (reworded,) = reword_for_cut_loops([remark])
    assert reworded.reason == "little is saved: the rest of the step is left as it is"
    assert reword_for_cut_loops([reworded]) == (reworded,)
    (beside,) = reword_beside_rewritten([reworded])
    assert beside.reason == "in the rest of the step: little is saved: the rest of the step is left as it is"
