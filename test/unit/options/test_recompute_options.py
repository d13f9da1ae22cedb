"""The constructor parses texts once; copies of the options hold the same parsed values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recompute.options.loop_schedule import LoopSchedule
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import BadSelection, Selection
from recompute.planning.host_moves import NOTHING_MOVED, Offload
from recompute.planning.plan_file import BadPlan

PLAN = '{"recompute_plan": 1, "steps": []}'


def test_texts_are_parsed_at_construction() -> None:
    options = RecomputeOptions(
        loops="periodic(8)", offload="25GB/s", cost="roofline(h100)", plan='{"recompute_plan": 1, "steps": []}'
    )
    assert options.loops == LoopSchedule("periodic", every=8)
    assert options.offload == Offload(True, 25 * 10**9, cost="roofline(h100)")
    assert options.plan == options.planned == ()
    assert RecomputeOptions().offload == NOTHING_MOVED


def test_copy_holds_the_same_parsed_values() -> None:
    options = RecomputeOptions(loops="periodic(8)", segment_budgets={"layer*": 0.3})
    copy = replace(options, copies=3)
    assert copy.loops is options.loops and copy.offload is options.offload
    assert copy.selection.segment_budgets == ("layer*:0.3",)


def test_segment_budgets_replace_those_of_the_selection() -> None:
    options = RecomputeOptions(Selection(segments="a", segment_budgets=("a:1%",)), segment_budgets="layer*:30%")
    assert options.selection == Selection(segments="a", segment_budgets=("layer*:30%",))


@pytest.mark.parametrize(
    ("option", "text", "error"),
    [("loops", "twice", BadSelection), ("plan", "plan.json", BadPlan), ("segment_budgets", "layer", BadSelection)],
)
def test_invalid_text_is_rejected_at_construction(option: str, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        RecomputeOptions(**{option: text})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_time_limit_must_be_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match=f"time_limit must be a positive number of seconds, not {seconds}"):
        RecomputeOptions(budget="50%", time_limit=seconds)


@pytest.mark.parametrize("budget", [None, "50%"])
def test_unknown_memory_model_is_rejected_at_construction(budget: str | None) -> None:
    with pytest.raises(ValueError, match="unknown memory model 'foo'; expected one of order, xla"):
        RecomputeOptions(budget=budget, memory_model="foo")
