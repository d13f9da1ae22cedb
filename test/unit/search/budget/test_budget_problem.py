"""The problem of a budget: measured results, their excess, and the wording of the budget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from recompute.mlir_io.parser import parse_module
from recompute.options.loop_schedule import SMALLEST_STACKS, UNCUT
from recompute.options.recompute_options import RecomputeOptions
from recompute.options.selection import Selection
from recompute.planning.objective import MAX_EAGER_FACTOR
from recompute.planning.plan import plan_nothing
from recompute.search.budget.budget_problem import BudgetProblem
from recompute.test.given_rewrites import GivenRewrites, problem_of, rewrite_of, step_of
from recompute.test.sine_chain import VALUE_BYTES, sine_chain_text

IN_ORDER = RecomputeOptions(target="none")


def with_module(module: ModuleOp, options: RecomputeOptions = IN_ORDER) -> BudgetProblem:
    return replace(problem_of(GivenRewrites([]), "50%", options=options), module=module)


def test_results_are_measured_under_the_model_of_the_budget() -> None:
    run = GivenRewrites([rewrite_of(7), rewrite_of(7)])
    assert problem_of(run, "50%").evaluate(None).peaks == {"step": 7 * VALUE_BYTES}
    assert problem_of(run, "50%", model="xla").evaluate(None).peaks == {"step": 0}, "XLA fuses the sines"


def test_peaks_of_an_unchanged_result_are_those_of_the_module() -> None:
    run = GivenRewrites([replace(rewrite_of(7), module=None)])
    assert problem_of(run, "50%", values=20).evaluate(None).peaks == {"step": 20 * VALUE_BYTES}


def test_loop_schedule_of_the_options_is_the_default() -> None:
    run = GivenRewrites([rewrite_of(7), rewrite_of(7)])
    problem = problem_of(run, "50%")
    problem.evaluate(plan_nothing)
    problem.evaluate(None, UNCUT)
    assert run.calls == [(plan_nothing, SMALLEST_STACKS), (None, UNCUT)]


DEAD = """
func.func public @step(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %dead = stablehlo.tanh %x : tensor<1024xf32>
  %unread = stablehlo.multiply %dead, %dead : tensor<1024xf32>
  %y = stablehlo.sine %x : tensor<1024xf32>
  func.return %y : tensor<1024xf32>
}"""


def test_dead_code_of_an_unchanged_result_is_not_counted() -> None:
    """A rewrite removes dead code, and the original step contains it."""
    problem = with_module(parse_module(DEAD))
    unchanged = replace(rewrite_of(7), module=None, peaks={"step": 3})
    assert problem.live_peaks(unchanged) == {"step": 0}
    assert "unread" in str(problem.module), "the module itself keeps its dead code"
    assert problem.live_peaks(rewrite_of(7)) == {"step": 7 * VALUE_BYTES}


@pytest.mark.parametrize(
    ("module", "segment_budgets", "is_single"),
    [
        (step_of(5), (), True),
        (step_of(5), ("layer*:30%",), False),
        (parse_module(DEAD), (), False),
        (parse_module(f"{sine_chain_text(4)}\n{sine_chain_text(4, 'other')}"), (), False),
    ],
    ids=["a step", "segment budgets", "dead code", "two functions"],
)
def test_only_a_flat_step_is_a_single_step(module: ModuleOp, segment_budgets: tuple[str, ...], is_single: bool) -> None:
    options = replace(IN_ORDER, selection=Selection(segment_budgets=segment_budgets))
    assert with_module(module, options).is_single_step == is_single


@pytest.mark.parametrize(("budget", "values", "is_within"), [("50%", 10, True), ("50%", 11, False), ("min", 3, False)])
def test_result_is_within_the_budget_up_to_its_limit(budget: str, values: int, is_within: bool) -> None:
    assert problem_of(GivenRewrites([]), budget, values=20).is_within_budget(rewrite_of(values)) == is_within


@pytest.mark.parametrize(
    ("budget", "target", "is_counted"),
    [("50%", "stablehlo", True), ("50%", "none", False), ("min", "stablehlo", False)],
)
def test_eager_peak_counts_only_with_barriers_and_a_limit(budget: str, target: str, is_counted: bool) -> None:
    problem = problem_of(GivenRewrites([]), budget, values=20, options=RecomputeOptions(target=target))
    eager_values = int(MAX_EAGER_FACTOR * 12)
    excess = int(eager_values * VALUE_BYTES / MAX_EAGER_FACTOR) - 10 * VALUE_BYTES
    assert excess > 0
    assert problem.eager_excess(rewrite_of(10, eager_values=eager_values)) == (excess if is_counted else 0)


@pytest.mark.parametrize(
    ("budget", "wording", "refused", "counted"),
    [
        (
            "50%",
            "of 50% (40.0 KiB of temporaries)",
            "of 50% (40.0 KiB of 80.0 KiB of temporaries) in program order",
            "a share counts temporaries only, without arguments and results",
        ),
        (
            "52KiB",
            "of 52KiB (40.0 KiB of temporaries beside 12.0 KiB of arguments and results)",
            "of 52KiB (40.0 KiB of 80.0 KiB of temporaries beside 12.0 KiB of arguments and results) in program order",
            "a budget in bytes includes arguments and results",
        ),
        ("min", "min", "of min in program order", "a budget in bytes includes arguments and results"),
    ],
)
def test_wording_names_the_budget_and_its_limit(budget: str, wording: str, refused: str, counted: str) -> None:
    problem = problem_of(GivenRewrites([]), budget, values=20)
    assert (problem.wording, problem.refused_wording, problem.counted_values) == (wording, refused, counted)


def test_problem_is_reported_at_the_first_function() -> None:
    module = step_of(5)
    assert with_module(module).report_location is next(iter(module.ops))
    empty = parse_module("builtin.module {}")
    assert with_module(empty).report_location is empty
