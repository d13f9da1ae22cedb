"""The cheapest rewrite within a budget: which search runs, and the remark on its result. The searches are given."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.options.loop_schedule import UNCUT
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.plan import plan_nothing
from recompute.planning.solvers.result import never_stop
from recompute.search.budget import within
from recompute.search.budget.budget_problem import BudgetProblem
from recompute.search.budget.within import cheapest_within_budget
from recompute.search.limits import MODEL_ERROR, Budget
from recompute.search.outcome import RewriteResult
from recompute.support.remarks import Remark, RemarkKind
from recompute.test.given_rewrites import GivenRewrites, rewrite_of, step_of
from recompute.test.sine_chain import VALUE_BYTES

SEGMENT_BUDGETS = RecomputeOptions(Selection(segment_budgets=("layer*:30%",)))


@pytest.fixture(autouse=True)
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The searches that have run. Each returns a rewrite with a peak of nine values."""
    names = list[str]()

    def search_in_order(problem: BudgetProblem) -> RewriteResult:
        names.append("order")
        return replace(rewrite_of(9, flops=500, copies=2), loops=problem.options.loop_schedule)

    def search_by_model(problem: BudgetProblem) -> RewriteResult:
        names.append("model")
        return replace(rewrite_of(9, flops=500, copies=1), loops=problem.options.loop_schedule)

    monkeypatch.setattr(within, "search_in_program_order", search_in_order)
    monkeypatch.setattr(within, "search_by_model", search_by_model)
    return names


def rewritten(
    budget: str, model: str = "order", options: RecomputeOptions = DEFAULT_OPTIONS, run: GivenRewrites | None = None
) -> tuple[RewriteResult, tuple[Remark, ...]]:
    """Rewrite a step with a peak of 20 values. Return the result and its remarks."""
    run = run or GivenRewrites([])
    result = cheapest_within_budget(step_of(20), Budget(budget, model), options, run, never_stop)
    return result, result.outcome.remarks


def test_program_order_has_its_own_search(searches: list[str]) -> None:
    _, (remark,) = rewritten("50%")
    assert searches == ["order"]
    assert remark.reason == (
        "budget of 50% (40.0 KiB of temporaries): 80.0 KiB -> 36.0 KiB at the peak in program order; "
        "2 operations are recomputed, 500 FLOPs more"
    )
    assert remark.kind is RemarkKind.PASSED
    assert remark.amounts == (
        ("peak_bytes_before", 20 * VALUE_BYTES),
        ("peak_bytes_after", 9 * VALUE_BYTES),
        ("operations", 2),
        ("flops", 500),
    )


def test_model_of_xla_has_a_remark_on_its_error(searches: list[str]) -> None:
    _, (remark, error) = rewritten("min", "xla")
    assert searches == ["model"]
    assert remark.reason.startswith("budget min: 0 B -> 36.0 KiB at the peak by the XLA:CPU model; 1 operation is")
    assert error.reason == f"the XLA:CPU model gives {MODEL_ERROR}" and error.kind is RemarkKind.ANALYSIS


@pytest.mark.parametrize("budget", ["100%", "1GiB"])
def test_step_within_the_budget_is_left_unchanged_without_a_search(budget: str, searches: list[str]) -> None:
    """Nothing is planned, and loops stay whole."""
    run = GivenRewrites([rewrite_of(20, copies=0)])
    result, (remark,) = rewritten(budget, run=run)
    assert result.module is None and searches == [] and run.calls == [(plan_nothing, UNCUT)]
    assert remark.reason.startswith(
        "no recomputation is needed: the step needs 80.0 KiB (81920 bytes) at its peak in program order, within the "
        f"budget of {budget} ("
    )
    assert remark.kind is RemarkKind.MISSED


@pytest.mark.parametrize(("values", "search"), [(20, []), (21, ["order"])])
def test_segment_budgets_are_kept_even_if_the_step_is_within_the_budget(
    values: int, search: list[str], searches: list[str]
) -> None:
    """The copies for segment budgets may raise the peak above the budget; then a search follows."""
    run = GivenRewrites([rewrite_of(values)])
    result, (remark,) = rewritten("100%", options=SEGMENT_BUDGETS, run=run)
    assert result.module is not None and searches == search and run.calls[0][0] is None
    assert f"80.0 KiB -> {'36.0' if search else '80.0'} KiB" in remark.reason


def test_schedule_is_named_if_it_differs_and_there_are_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    def search_uncut(problem: BudgetProblem) -> RewriteResult:
        return rewrite_of(9)

    def has_loops(module: ModuleOp) -> bool:
        return True

    monkeypatch.setattr(within, "search_in_program_order", search_uncut)
    _, (remark,) = rewritten("50%")
    assert "loops=" not in remark.reason, "there are no loops to cut"
    monkeypatch.setattr(within, "has_loops", has_loops)
    _, (remark,) = rewritten("50%")
    assert remark.reason.endswith(f", with {UNCUT.pass_option}")
    _, (remark,) = rewritten("50%", options=RecomputeOptions(loops=UNCUT))
    assert "loops=" not in remark.reason, "the options give this schedule"


def test_remark_follows_the_remarks_of_the_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Remark(step_of(3), "a remark of the rewrite")

    def search(problem: BudgetProblem) -> RewriteResult:
        return rewrite_of(9).with_remarks(own)

    monkeypatch.setattr(within, "search_in_program_order", search)
    _, remarks = rewritten("50%")
    assert remarks[0] is own and len(remarks) == 2
