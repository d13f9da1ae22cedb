"""The choice of the plan to mark: that of the search if its marks keep the budget, or else another candidate."""

from __future__ import annotations

import pytest

from recompute.search.budget import markable_plan
from recompute.search.budget.budget_problem import BudgetProblem
from recompute.search.budget.markable_plan import markable_result
from recompute.search.outcome import RewriteResult
from recompute.support.diagnostics import Refusal
from recompute.test.given_rewrites import GivenRewrites, problem_of, rewrite_of
from recompute.test.sine_chain import VALUE_BYTES

SEARCHED = rewrite_of(8, flops=100)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[RewriteResult]:
    """The results of further searches. Without a result, the search refuses the budget."""
    results = list[RewriteResult]()

    def search(problem: BudgetProblem) -> RewriteResult:
        if not results:
            raise Refusal(problem.module, "no plan is within the budget")
        return results.pop(0)

    monkeypatch.setattr(markable_plan, "search_by_model", search)
    return results


def test_plan_of_the_search_is_marked_if_the_derived_plan_is_within_the_budget(searches: list[RewriteResult]) -> None:
    searches.append(rewrite_of(5))
    run = GivenRewrites([rewrite_of(10, flops=100)])
    chosen = markable_result(problem_of(run, "50%"), SEARCHED)
    assert chosen is not None and chosen.result.peaks == {"step": 10 * VALUE_BYTES}
    assert chosen.is_met and not chosen.is_as_good, "it needs more memory than the plan of the search"
    assert [planned for planned, _ in run.calls] == [SEARCHED.outcome.plans] and len(searches) == 1


@pytest.mark.parametrize(
    ("values", "flops", "is_as_good"), [(8, 100, True), (7, 90, True), (8, 101, False), (9, 90, False)]
)
def test_derived_plan_is_as_good_if_it_needs_no_more_memory_and_work(
    values: int, flops: int, is_as_good: bool, searches: list[RewriteResult]
) -> None:
    chosen = markable_result(problem_of(GivenRewrites([rewrite_of(values, flops)]), "50%"), SEARCHED)
    assert chosen is not None and chosen.is_met and chosen.is_as_good == is_as_good


@pytest.mark.parametrize(
    ("derived", "other", "chosen_values", "is_met"),
    [(11, 10, 10, True), (11, 12, 11, False), (12, 11, 11, False), (None, 9, 9, True), (11, None, 11, False)],
)
def test_other_candidate_is_marked_if_it_is_smaller(
    derived: int | None, other: int | None, chosen_values: int, is_met: bool, searches: list[RewriteResult]
) -> None:
    searches += [] if other is None else [rewrite_of(other)]
    run = GivenRewrites([None if derived is None else rewrite_of(derived)])
    chosen = markable_result(problem_of(run, "50%"), SEARCHED)
    assert chosen is not None and chosen.result.peaks == {"step": chosen_values * VALUE_BYTES}
    assert chosen.is_met == is_met and not searches


def test_no_plan_is_marked_if_none_can_be_applied(searches: list[RewriteResult]) -> None:
    assert markable_result(problem_of(GivenRewrites([None]), "50%"), SEARCHED) is None


@pytest.mark.parametrize(("values", "is_met"), [(8, True), (9, False)])
def test_minimum_is_met_if_no_more_memory_is_needed_than_the_search_found(
    values: int, is_met: bool, searches: list[RewriteResult]
) -> None:
    chosen = markable_result(problem_of(GivenRewrites([rewrite_of(values)]), "min"), SEARCHED)
    assert chosen is not None and chosen.is_met == is_met
