"""Options that exclude one another are rejected with a message that spells them as the entry point does."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from recompute.options.conflicts import CONFLICTS, demand_agreement, given_options
from recompute.options.option_facts import EntryPoint
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.plan import plan_nothing

JIT, REWRITE, PASS, TORCH = EntryPoint.JIT, EntryPoint.REWRITE, EntryPoint.RECOMPUTE_PASS, EntryPoint.TORCH
OF_JIT = {"budget", "search"}
"""Options in the table that are no fields of the options object in `recompute.jax.jit`."""


@pytest.mark.parametrize(
    ("options", "entry_point", "message"),
    [
        ({"plan": (), "budget": "min"}, PASS, "recompute: give plan or budget, not both"),
        ({"plan": (), "planner": plan_nothing}, TORCH, "recompute.torch: give plan= or planner=, not both"),
        (
            {"plan": (), "selection": Selection(segment_budgets=("a:50%",))},
            PASS,
            "recompute: plan and segment-budgets both select the values to recompute: give one of them",
        ),
        (
            {"planner": plan_nothing, "segment_budgets": "a:50%"},
            REWRITE,
            "recompute.rewrite: planner= and segment_budgets= both select the values to recompute: give one of them",
        ),
        (
            {"pipeline": "recompute", "copies": 3},
            REWRITE,
            "recompute.rewrite: copies= is an option of the pass 'recompute': with pipeline=, give it there",
        ),
        ({"pipeline": "recompute", "workers": 2}, REWRITE, "recompute.rewrite: give pipeline= or workers=, not both"),
        (
            {"time_limit": 5},
            PASS,
            "recompute: time-limit has no effect without budget: give budget as well, or omit time-limit",
        ),
        (
            {"time_limit": 5},
            JIT,
            "recompute.jax.jit: time_limit= has no effect without budget=: give budget= as well, or omit time_limit=",
        ),
        (
            {"time_limit": 5},
            REWRITE,
            "recompute.rewrite: time_limit= has no effect without budget=: give budget= as well, or omit time_limit=",
        ),
        (
            {"memory_model": "order"},
            PASS,
            "recompute: memory-model has no effect without budget: give budget as well, or omit memory-model",
        ),
        (
            {"memory_model": "order", "selection": Selection(segment_budgets=("a:50%",))},
            EntryPoint.PLAN_PASS,
            "recompute-plan: memory-model has no effect without budget: give budget as well, or omit memory-model",
        ),
    ],
)
def test_message_spells_the_options_as_the_entry_point_does(
    options: dict[str, Any], entry_point: EntryPoint, message: str
) -> None:
    with pytest.raises(ValueError) as error:
        demand_agreement(RecomputeOptions(**options), entry_point)
    assert str(error.value) == message


def test_rule_holds_at_its_entry_points_only() -> None:
    options = RecomputeOptions(Selection(segments="a", checkpoints=("b",)))
    demand_agreement(options, REWRITE)
    with pytest.raises(ValueError, match="give segments= or checkpoints=, not both"):
        demand_agreement(options, JIT)


def test_options_beside_the_object_are_given() -> None:
    demand_agreement(RecomputeOptions(), JIT, ["search"])
    with pytest.raises(ValueError, match=r"recompute\.jax\.jit: budget= and search= both select"):
        demand_agreement(RecomputeOptions(), JIT, ["budget", "search"])


def test_memory_model_applies_to_the_default_budget_of_recompute_plan() -> None:
    demand_agreement(RecomputeOptions(memory_model="order"), EntryPoint.PLAN_PASS)


def test_table_names_existing_options() -> None:
    known = {field.name for options in (RecomputeOptions, Selection) for field in fields(options)} | OF_JIT
    for conflict in CONFLICTS:
        assert {*conflict.options, *conflict.others} <= known


def test_given_options_differ_from_their_defaults() -> None:
    assert given_options(RecomputeOptions(loops=True, offload="")) == frozenset()
    options = RecomputeOptions(Selection(skip=(1,), cotangents=(2,)), loops="periodic(8)", plan=())
    assert given_options(options) == {"skip", "cotangents", "loops", "plan"}
