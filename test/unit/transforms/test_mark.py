"""Marks as a value: the attributes that decisions would write, without writing them."""

from __future__ import annotations

import pytest

from recompute.analysis.copies.decide import decide
from recompute.options.selection import Selection
from recompute.test.examples import inlined
from recompute.transforms.mark import marked_attributes, write_marks
from recompute.transforms.phase import numbered_steps
from recompute.transforms.plans.notes import notes_of

SELECTIONS = {
    "auto": Selection(),
    "outputs": Selection(outputs=True),
    "offloaded": Selection(policy="save_and_offload_only_these_names", names=("", "block*")),
    "some skipped": Selection(skip=(0,)),
}


@pytest.mark.parametrize("name", ["mlp.small.mlir", "unet.small.mlir"])
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_marks_are_computed_as_they_are_written(name: str, selection: Selection) -> None:
    ((_, step),) = numbered_steps(inlined(name).clone())
    before = [dict(op.attributes) for op in step.numbered.operations]
    decided = decide(step, selection)
    marked = marked_attributes(decided)
    notes = list(notes_of(step, marked))
    assert notes and [dict(op.attributes) for op in step.numbered.operations] == before
    write_marks(decided)
    assert list(notes_of(step)) == notes
