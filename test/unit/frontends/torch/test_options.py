"""Options are checked before anything is compiled, and the command line reads the offline export."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from recompute import RecomputeOptions, explain, rewrite
from recompute.test.unit.frontends.torch.steps import made, torch

import recompute.torch as rt  # isort: skip
from recompute.frontends.torch.partition.options import budget_within, options_of  # isort: skip


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"budgets": "50%"}, TypeError, "unknown option 'budgets'; did you mean 'budget'"),
        ({"budget": "40G5"}, ValueError, "invalid budget '40G5'"),
        ({"budget": 1.5}, ValueError, "a share of the peak of the original step must be above 0 and at most 1"),
        (
            {"budget": "50%", "reserve": "1GiB"},
            ValueError,
            "can only be subtracted from a budget in bytes, but the budget is '50%'",
        ),
        ({"budget": "1GiB", "reserve": "2GiB"}, ValueError, "uses up the whole budget of 1GiB"),
        ({"budget": "1GiB", "planner": print}, ValueError, "recompute.torch: give planner= or budget=, not both"),
        (
            {"segment_budgets": "a:50%", "planner": print},
            ValueError,
            "recompute.torch: planner= and segment_budgets= both select the values to recompute",
        ),
    ],
)
def test_invalid_options(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        rt.backend(**options)


def test_unknown_option_of_compile_gets_a_suggestion() -> None:
    with pytest.raises(TypeError, match="unknown option 'fulgraph'; did you mean 'fullgraph'"):
        rt.compile(torch.nn.Linear(2, 2), fulgraph=True)


def test_reserve_is_subtracted_from_the_budget() -> None:
    assert budget_within("1GiB", "512MiB") == f"{2**29}B"
    assert budget_within(1000, 400) == "600B"
    assert budget_within(0.5, 0) == "0.5"


def test_lowest_budget_is_accepted_in_any_case() -> None:
    assert budget_within(" Min ", 0) == "min"


def test_options_have_the_names_of_the_jax_frontend() -> None:
    options = options_of({"segments": "blocks.*", "policy": "dots_saveable", "save": ["mm"], "copies": 3})
    selection = options.rewrite.selection
    assert (selection.segments, selection.policy, selection.save) == ("blocks.*", "dots_saveable", ("mm",))
    assert (options.rewrite.copies, options.rewrite.target, options.budget) == (3, "none", None)


def test_budget_is_an_option_of_the_rewrite() -> None:
    options = options_of({"budget": "50%"})
    assert [option.name for option in fields(options)] == [
        "rewrite"
    ] and options.budget == options.rewrite.budget == "50%"


def test_segment_budgets_are_text_or_a_mapping() -> None:
    selections = [options_of({"segment_budgets": stated}).rewrite.selection for stated in ("a:50%", {"a": "50%"})]
    assert [selection.segment_budgets for selection in selections] == [("a:50%",)] * 2


@pytest.mark.parametrize(("name", "policy"), [("", ""), ("a/b", ""), ("a", "forget")])
def test_invalid_regions(name: str, policy: str) -> None:
    with pytest.raises(ValueError, match="region: "), rt.region(name, policy):
        pass


def test_export_runs_nothing_and_can_be_rewritten() -> None:
    torch._dynamo.reset()
    model, args = made("batch norm")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    text = rt.export(model, args)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())
    rewritten = rewrite(text, RecomputeOptions(target="none", stagger=False))
    assert rewritten.copies > 0 and rewritten.proof is not None and rewritten.proof.proved
    assert "layers" in str(explain(text))


def test_a_step_without_a_backward_pass_is_not_exported() -> None:
    torch._dynamo.reset()
    with pytest.raises(ValueError, match="the step has no backward pass"):
        rt.export(lambda x: x.sin(), (torch.ones(3),))
