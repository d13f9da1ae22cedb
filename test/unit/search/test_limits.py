"""The conversion of a budget to a limit on the temporaries of each function."""

from __future__ import annotations

import pytest

from recompute.mlir_io.parser import parse_module
from recompute.search.limits import Budget, BudgetLimits, budget_limits, temporaries_limit
from recompute.support.diagnostics import Refusal
from recompute.support.interface import command_line
from recompute.test.sine_chain import VALUE_BYTES, sine_chain, sine_chain_text

TWO = BudgetLimits({"a": 1000, "b": 4000}, {"a": 500, "b": 4000})


@pytest.mark.parametrize(
    ("model", "target", "expected"),
    [("", "none", "order"), ("", "stablehlo", "xla"), ("order", "stablehlo", "order"), ("xla", "none", "xla")],
)
def test_target_determines_the_default_model(model: str, target: str, expected: str) -> None:
    budget = Budget.of("50%", model, target)
    assert (budget.text, budget.model) == ("50%", expected)
    assert budget.model_phrase == ("in program order" if expected == "order" else "by the XLA:CPU model")


@pytest.mark.parametrize(("text", "model"), [("40G5", ""), ("150%", ""), ("-1GiB", ""), ("50%", "cpu")])
def test_invalid_budgets_and_models_are_refused(text: str, model: str) -> None:
    with pytest.raises(ValueError):
        Budget.of(text, model, "none")


def test_ratio_is_the_largest_of_all_functions() -> None:
    assert TWO.largest_ratio({"a": 500, "b": 1000}) == 1.0
    assert TWO.largest_ratio({"a": 250, "b": 6000}) == 1.5
    assert BudgetLimits(TWO.plain_bytes, None).largest_ratio({"a": 500, "b": 1000}) == 0.5, "relative to the plain step"
    assert BudgetLimits({"a": 0}, {"a": 0}).largest_ratio({"a": 8}) == 8.0, "no division by zero"


@pytest.mark.parametrize(
    ("peaks", "excess"),
    [({"a": 500, "b": 4000}, 0), ({"a": 600, "b": 1000}, 100), ({"a": 400, "b": 3950}, -50)],
)
def test_excess_is_the_largest_of_all_functions(peaks: dict[str, int], excess: int) -> None:
    assert TWO.excess_bytes(peaks) == excess
    assert BudgetLimits(TWO.plain_bytes, None).excess_bytes(peaks) == 0


def test_plain_step_is_within_a_budget_only_if_every_function_is() -> None:
    assert not TWO.is_within_budget
    assert BudgetLimits({"a": 1000}, {"a": 1000}).is_within_budget
    assert not BudgetLimits({"a": 1000}, None).is_within_budget


def test_limits_of_several_functions_are_listed() -> None:
    assert TWO.wording == "500 B of temporaries, 3.9 KiB of temporaries"
    beside = BudgetLimits({"a": 1000}, {"a": 500}, {"a": 100})
    assert beside.wording == "500 B of temporaries beside 100 B of arguments and results"
    assert beside.wording_with_plain == ("500 B of 1000 B of temporaries beside 100 B of arguments and results")


@pytest.mark.parametrize(
    ("text", "limit", "fixed"),
    [("50%", 5 * VALUE_BYTES, None), ("40KiB", 7 * VALUE_BYTES, 3 * VALUE_BYTES), ("min", None, None)],
)
def test_arguments_and_results_count_only_towards_bytes(text: str, limit: int | None, fixed: int | None) -> None:
    """A chain of nine values has one argument and two results."""
    limits = budget_limits(sine_chain(9), Budget(text, "order"))
    assert limits.plain_bytes == {"step": 10 * VALUE_BYTES}
    assert limits.limit_bytes == (None if limit is None else {"step": limit})
    assert limits.fixed_bytes == ({} if fixed is None else {"step": fixed})


def test_each_function_has_a_limit() -> None:
    module = parse_module(f"{sine_chain_text(9, 'first')}\n{sine_chain_text(19, 'second')}")
    limits = budget_limits(module, Budget("50%", "order"))
    assert limits.limit_bytes == {"first": 5 * VALUE_BYTES, "second": 10 * VALUE_BYTES}


def test_budget_below_arguments_and_results_is_refused_at_the_function() -> None:
    module = parse_module(f"{sine_chain_text(9, 'first')}\n{sine_chain_text(19, 'second')}")
    need = r"arguments and results of @first, which no plan changes, need 12\.0 KiB"
    with pytest.raises(Refusal, match=need) as error:
        budget_limits(module, Budget("8KiB", "order"))
    assert error.value.operation is next(iter(module.ops)) and 'budget="min"' in error.value.reason


def test_remedy_is_spelled_as_in_the_interface() -> None:
    with command_line(), pytest.raises(Refusal, match="; budget=min finds the smallest budget"):
        temporaries_limit(sine_chain(2), "8KiB", 100, 9000)


@pytest.mark.parametrize(
    ("budget", "limit"), [("50%", 500), ("0.5", 500), ("1000B", 900), ("100B", 0), ("min", None), ("MIN ", None)]
)
def test_limit_leaves_the_temporaries(budget: str, limit: int | None) -> None:
    """A budget of exactly the arguments and results leaves nothing."""
    assert temporaries_limit(sine_chain(2), budget, plain_bytes=1000, fixed_bytes=100) == limit


def test_dynamic_shapes_have_no_limit() -> None:
    kind = "tensor<?xf32>"
    module = parse_module(
        f"func.func public @step(%x: {kind}) -> {kind} {{ %a = stablehlo.sine %x : {kind}\n"
        f"%b = stablehlo.sine %a : {kind}\nfunc.return %b : {kind} }}"
    )
    with pytest.raises(Refusal, match="lower the step for the largest shapes that must fit"):
        budget_limits(module, Budget("50%", "order"))
