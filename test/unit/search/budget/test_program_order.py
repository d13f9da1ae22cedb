"""The search in program order: loop schedules, retries with lower limits, and the preferred result. The rewrites are
given."""

from __future__ import annotations

import pytest

from recompute.options.loop_schedule import SMALLEST_STACKS, UNCUT, LoopSchedule
from recompute.options.recompute_options import RecomputeOptions
from recompute.planning.plan import Optimality
from recompute.search.budget import program_order
from recompute.search.budget.budget_problem import BudgetProblem
from recompute.search.budget.program_order import search_in_program_order
from recompute.search.budget.solver_rounds import MAX_LOWERED, MAX_ROUNDS
from recompute.search.outcome import RewriteResult
from recompute.support.diagnostics import Refusal
from recompute.test.given_rewrites import GivenRewrites, problem_of, rewrite_of
from recompute.test.sine_chain import VALUE_BYTES

IN_ORDER = RecomputeOptions(target="none")


def searched(
    run: GivenRewrites, budget: str = "50%", options: RecomputeOptions = IN_ORDER, is_stopped: bool = False
) -> RewriteResult:
    """Search for a rewrite of a step with a peak of 20 values."""
    return search_in_program_order(problem_of(run, budget, options=options, stop=lambda: is_stopped))


def values(result: RewriteResult) -> int:
    return result.peaks["step"] // VALUE_BYTES


def refusal_of(run: GivenRewrites, budget: str = "50%") -> str:
    with pytest.raises(Refusal) as error:
        searched(run, budget)
    return error.value.reason


def kinds(run: GivenRewrites) -> list[str]:
    """Return how each rewrite was planned: by a solver, or as without a budget."""
    return ["solver" if callable(planned) else "no budget" for planned, _ in run.calls]


def test_plan_within_the_budget_is_compared_with_the_choice_without_a_budget() -> None:
    run = GivenRewrites([rewrite_of(10, flops=9), rewrite_of(9, flops=5)])
    assert searched(run).outcome.extra_flops == 5 and kinds(run) == ["solver", "no budget"]
    run = GivenRewrites([rewrite_of(10, flops=9), rewrite_of(9, flops=12)])
    assert searched(run).outcome.extra_flops == 9
    run = GivenRewrites([rewrite_of(10, flops=9), rewrite_of(11, flops=5)])
    assert searched(run).outcome.extra_flops == 9, "the choice without a budget is above the budget"
    run = GivenRewrites([rewrite_of(10, flops=9), rewrite_of(9, flops=0, copies=0)])
    assert searched(run).outcome.extra_flops == 9, "the choice without a budget recomputes nothing"


@pytest.mark.parametrize(("bound_percent", "is_compared"), [(50.0, False), (10.0, True)])
def test_nearly_optimal_plan_ends_the_search(bound_percent: float, is_compared: bool) -> None:
    optimality = Optimality(percent=50.0, bound_percent=bound_percent, by="a test")
    run = GivenRewrites([rewrite_of(10, flops=9, optimality=optimality), rewrite_of(9, flops=5)])
    assert searched(run).outcome.extra_flops == (5 if is_compared else 9)
    assert kinds(run) == ["solver", "no budget"][: 1 + is_compared]


def test_minimum_is_compared_with_the_choice_without_a_budget_even_if_its_plan_is_optimal() -> None:
    """Optimality is a bound on the cost, not on the peak of the rewritten program."""
    optimality = Optimality(percent=50.0, bound_percent=50.0, by="a test")
    run = GivenRewrites([rewrite_of(8, optimality=optimality), rewrite_of(7)])
    assert values(searched(run, "min")) == 7


CHEAP = rewrite_of(10, flops=100, eager_values=100)
"""A result within the budget in program order, whose peak on an eager executor is high."""


@pytest.mark.parametrize(
    ("further", "expected_flops"),
    [
        ([rewrite_of(10, flops=200, eager_values=10)], 200),
        ([rewrite_of(10, flops=90000, eager_values=10)], 100),
        ([rewrite_of(10, flops=90000, eager_values=100)], 100),
        ([rewrite_of(10, flops=300, eager_values=100), rewrite_of(10, flops=400, eager_values=10)], 400),
        ([None], 100),
    ],
    ids=["little work", "much work", "much work and a high peak", "two steps", "no plan"],
)
def test_low_eager_peak_is_preferred_if_it_costs_little(
    further: list[RewriteResult | None], expected_flops: int
) -> None:
    """The plain step costs 1024 FLOPs for each of 18 operations."""
    run = GivenRewrites([CHEAP, *further, rewrite_of(11)])
    assert searched(run, options=RecomputeOptions()).outcome.extra_flops == expected_flops
    assert kinds(run) == ["solver"] * (1 + len(further)) + ["no budget"]


def test_result_above_the_budget_is_planned_again() -> None:
    """CSE may extend live ranges beyond the plan."""
    run = GivenRewrites([rewrite_of(12), rewrite_of(11), rewrite_of(10, flops=9), rewrite_of(15)])
    result = searched(run)
    assert values(result) == 10 and kinds(run) == ["solver", "solver", "solver", "no budget"]


def test_number_of_plans_is_limited() -> None:
    run = GivenRewrites([*(rewrite_of(12) for _ in range(MAX_ROUNDS)), rewrite_of(11)])
    assert refusal_of(run) == (
        "no plan is within the budget of 50% (40.0 KiB of 80.0 KiB of temporaries) in program order: the rewritten "
        "program of the last plan exceeds it by 8.0 KiB (8192 bytes)"
    )
    assert kinds(run) == ["solver"] * MAX_ROUNDS + ["no budget"]


def test_choice_without_a_budget_meets_a_budget_that_no_solver_meets() -> None:
    run = GivenRewrites([None, rewrite_of(9, flops=5)])
    assert values(searched(run)) == 9
    assert refusal_of(GivenRewrites([None, rewrite_of(11)])) == "the plan does not apply", "the solver's reason"


@pytest.mark.parametrize(("least", "ordinary", "expected"), [(8, 9, 8), (9, 8, 8)])
def test_minimum_is_the_lowest_peak(least: int, ordinary: int, expected: int) -> None:
    """The first plan has the peak that the solver planned, so no further plan is tried."""
    run = GivenRewrites([rewrite_of(least, flops=1), rewrite_of(ordinary, flops=5)])
    assert values(searched(run, "min")) == expected


def test_cheaper_of_two_results_with_the_lowest_peak_is_preferred() -> None:
    run = GivenRewrites([rewrite_of(8, flops=9), rewrite_of(8, flops=5)])
    assert searched(run, "min").outcome.extra_flops == 5


class PlannedPeaks(GivenRewrites):
    """Rewrites whose plans had a peak of four values, and whose programs need more."""

    def __call__(self, planned: object, loops: LoopSchedule) -> RewriteResult:
        if callable(planned) and (search := getattr(planned, "__self__", None)) is not None:
            search.planned_bytes["step"] = 4 * VALUE_BYTES
        return super().__call__(None if not callable(planned) else planned, loops)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("further", "expected", "solver_plans"),
    [([7, 6], 6, 3), ([9, 7], 7, 3), ([9, None], 8, 3), ([None], 8, 2), ([7, None], 7, 3), ([4], 4, 2)],
    ids=["two lower ones", "the second is lower", "a higher one", "no plan", "one lower one", "as planned"],
)
def test_further_plans_are_tried_for_a_minimum_above_its_plan(
    further: list[int | None], expected: int, solver_plans: int
) -> None:
    others = [None if each is None else rewrite_of(each) for each in further]
    run = PlannedPeaks([rewrite_of(8), *others, rewrite_of(19)])
    assert values(searched(run, "min")) == expected
    assert kinds(run)[:-1] == ["solver"] * solver_plans and solver_plans <= 1 + MAX_LOWERED


def test_stopped_search_for_the_minimum_keeps_its_first_plan() -> None:
    run = PlannedPeaks([rewrite_of(8), rewrite_of(19)])
    assert values(searched(run, "min", is_stopped=True)) == 8


class TestLoopSchedules:
    """A step is searched with each loop schedule. The step of these tests has two schedules, and is no single step."""

    @pytest.fixture(autouse=True)
    def schedules(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def loop_choices(module: object, options: object) -> list[LoopSchedule]:
            return [UNCUT, SMALLEST_STACKS]

        monkeypatch.setattr(program_order, "loop_choices", loop_choices)

    def test_single_step_has_no_loops(self) -> None:
        """All schedules lead to the same graph, so only the first one is searched."""
        run = GivenRewrites([rewrite_of(10), rewrite_of(15)])
        searched(run)
        assert [loops for _, loops in run.calls] == [UNCUT, UNCUT]

    def test_same_graphs_are_not_searched_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(BudgetProblem, "is_single_step", False)
        run = GivenRewrites([rewrite_of(10, flops=3), rewrite_of(10, flops=1)])
        assert searched(run).outcome.extra_flops == 3, "the step is within the budget without copies"
        assert [loops for _, loops in run.calls] == [UNCUT, SMALLEST_STACKS]

    def test_refusal_names_the_schedule(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def loop_choices(module: object, options: object) -> list[LoopSchedule]:
            return [UNCUT, SMALLEST_STACKS, LoopSchedule("periodic", every=8)]

        monkeypatch.setattr(program_order, "loop_choices", loop_choices)
        reason = refusal_of(GivenRewrites([None, rewrite_of(11)]))
        assert reason == (
            'the plan does not apply; this bound is for loops="periodic(8)", and the other loop schedules need more '
            "memory"
        )
