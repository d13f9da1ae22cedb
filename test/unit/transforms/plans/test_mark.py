"""Computed marks are the attributes that the mark pass would write."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import BoolAttr, StringAttr

from recompute.analysis.copies.decided_marks import MarkSource, decided_marks
from recompute.analysis.step.module_steps import numbered_steps
from recompute.dialects.names import Names
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.rewriting.rewrite import rewritten_copy
from recompute.search.choice.segment_decisions import segment_decisions
from recompute.test.examples import inlined, original
from recompute.transforms.plans.notes import notes_of
from recompute.transforms.plans.write_decisions import marked_attributes, write_marks

SELECTIONS = {
    "auto": Selection(),
    "outputs": Selection(outputs=True),
    "offloaded": Selection(policy="save_and_offload_only_these_names", names=("", "block*")),
    "some skipped": Selection(skip=(0,)),
}


@pytest.mark.parametrize("name", ["mlp.small.mlir", "unet.small.mlir"])
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_computed_marks_equal_written_marks(name: str, selection: Selection) -> None:
    ((_, step),) = numbered_steps(inlined(name).clone())
    before = [dict(op.attributes) for op in step.numbered.operations]
    decided = segment_decisions(step, selection)
    marked = marked_attributes(decided)
    notes = list(notes_of(step, marked))
    assert notes and [dict(op.attributes) for op in step.numbered.operations] == before
    write_marks(decided)
    assert list(notes_of(step)) == notes


def test_user_mark_overrides_decision() -> None:
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    decided = segment_decisions(step, Selection())
    chosen = [mark for mark in decided_marks(decided) if mark.recomputed]
    assert chosen and {mark.source for mark in chosen} == {MarkSource.DECISION}
    chosen[0].operation.attributes[Names.RECOMPUTE] = BoolAttr.from_bool(True)
    marks = {mark.operation: mark for mark in decided_marks(segment_decisions(step, Selection()))}
    assert marks[chosen[0].operation].source is MarkSource.USER


def test_preference_in_skipped_segment_is_refused() -> None:
    ((_, step),) = numbered_steps(inlined("mlp.small.mlir").clone())
    op = next(mark.operation for mark in decided_marks(segment_decisions(step, Selection())) if mark.recomputed)
    op.attributes[Names.RECOMPUTE] = StringAttr("prefer_recompute")
    skipping = segment_decisions(step, Selection(skip=(0,)))
    assert [mark.source for mark in decided_marks(skipping) if mark.operation is op] == [MarkSource.REFUSED_PREFERENCE]


@pytest.mark.parametrize("selection", [Selection(skip=(0,)), Selection(skip=(0, 1)), Selection()])
@pytest.mark.parametrize("name", ["mlp.small.mlir", "gpt.small.mlir"])
def test_remarks_have_the_segments_that_they_name(name: str, selection: Selection) -> None:
    outcome = rewritten_copy(original(name), RecomputeOptions(selection)).outcome
    remarks = [*outcome.remarks, *outcome.recomputed]
    assert any(remark.segments for remark in remarks)
    for remark in remarks:
        quoted = re.findall(r"'([^']+)'", remark.reason) if "segment" in remark.reason else []
        assert list(remark.segments) == [segment for segment in quoted if not segment.startswith("--")]
