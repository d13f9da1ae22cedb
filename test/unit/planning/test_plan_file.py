"""Plans as text: what is written is read again, and what is no plan is refused in words."""

from __future__ import annotations

import pytest

from recompute.planning.plan import Batch, CopyGroup, Kept, Plan
from recompute.planning.plan_file import BadPlan, Note, StepPlan, from_json, to_json

GROUP = CopyGroup("a/b#1", 7, (Batch((1, 2), (0,)), Batch((3,), (), (4,))), (1, 2, 1), (3, 5), (9,), 10, 4, 30)
STEP = StepPlan(
    "main",
    "5f",
    Plan((GROUP, GROUP), (Kept("c", 5, "why"),)),
    (Note(1, "a", True), Note(2, recompute=(False, "must_save")), Note(3, "a", checkpoint=True)),
)


def test_what_is_written_is_read_again() -> None:
    steps = (STEP, StepPlan("other", "00", Plan()))
    assert from_json(to_json(steps)) == steps
    assert to_json(from_json(to_json(steps))) == to_json(steps)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: the plan is no JSON"),
        ("[]", "lacks something"),
        ("{}", "lacks something, or has what it should not have: 'recompute_plan'"),
        ('{"recompute_plan": 2, "steps": []}', "of version 2, and version 1 is read here"),
        ('{"recompute_plan": 1}', "'steps'"),
        (to_json([STEP]).replace('"before"', '"behind"'), "behind"),
        (to_json([STEP]).replace('"gates": [9]', '"gates": [9.5]'), r"expected a list of numbers, not \[9.5\]"),
        (to_json([STEP]).replace('"gates": [9]', '"gates": 9'), "lacks something"),
        (to_json([STEP]).replace('"replaces": [3, 5], ', ""), "'replaces'"),
    ],
)
def test_what_is_no_plan_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadPlan, match=words):
        from_json(text)
