"""Plan files: a written plan is read back unchanged, and an invalid one is refused with a reason."""

from __future__ import annotations

import pytest

from recompute.planning.plan import Batch, CopyGroup, NotRecomputed, Plan
from recompute.planning.plan_file import BadPlan, OperationNote, StepPlan, from_json, to_json

GROUP = CopyGroup("a/b#1", 7, (Batch((1, 2), (0,)), Batch((3,), (), (4,))), (1, 2, 1), (3, 5), (9,), 10, 4, 30)
STEP = StepPlan(
    "main",
    "5f",
    Plan((GROUP, GROUP), (NotRecomputed("c", 5, "why"),)),
    (
        OperationNote(1, "a", True),
        OperationNote(2, recompute=(False, "must_save")),
        OperationNote(3, "a", checkpoint=True),
    ),
)


def changed(this: str, into: str) -> str:
    text = to_json([STEP])
    assert this in text
    return text.replace(this, into)


def test_plan_file_round_trips() -> None:
    steps = (STEP, StepPlan("other", "00", Plan()))
    assert from_json(to_json(steps)) == steps
    assert to_json(from_json(to_json(steps))) == to_json(steps)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1: the plan is not valid JSON"),
        ("[" * 100000, "not valid JSON"),
        ("9" * 5000, "not valid JSON"),
        ("[]", "plan must be an object"),
        ("{}", "plan.recompute_plan is missing"),
        ('{"recompute_plan": 2, "steps": []}', "the plan has version 2, expected version 1"),
        ('{"recompute_plan": true, "steps": []}', "plan.recompute_plan is not a whole number: True"),
        ('{"recompute_plan": 1}', "plan.steps is missing"),
        ('{"recompute_plan": 1, "steps": 1}', "plan.steps must be a list, not 1"),
        ('{"recompute_plan": 1, "steps": [1]}', r"plan.steps\[0\] must be an object"),
        (changed('"before"', '"behind"'), r"plan.steps\[0\].groups\[0\] has an unknown field 'behind'"),
        (changed('"gates": [9]', '"gates": [9.5]'), r"groups\[0\].gates\[0\] is not a whole number: 9.5"),
        (changed('"gates": [9]', '"gates": 9'), r"gates must be a list of numbers, not 9"),
        (changed('"replaces": [3, 5], ', ""), r"groups\[0\].replaces is missing"),
        (changed('"inputs": [0]', '"inputs": [true]'), r"batches\[0\].inputs\[0\] is not a whole number"),
        (changed('"before": 7', '"before": "7"'), r"groups\[0\].before is not a whole number: '7'"),
        (changed('"segment": "c"', '"segment": null'), r"kept\[0\].segment must be a string, not None"),
        (changed('"checkpoint": true', '"checkpoint": 1'), r"notes\[2\].checkpoint must be a boolean, not 1"),
        (changed('[false, "must_save"]', "[false, 1]"), r"notes\[1\].recompute must be a mark or a list of marks"),
        (changed('[false, "must_save"]', "1"), r"notes\[1\].recompute must be a mark"),
    ],
)
def test_invalid_plan_is_rejected(text: str, words: str) -> None:
    with pytest.raises(BadPlan, match=words):
        from_json(text)
