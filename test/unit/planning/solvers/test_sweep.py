"""Sweeps over budgets: notations of budgets, monotone curves, copies of views, and deterministic results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.graph_file import read_graph
from recompute.planning.solvers.incumbent import Incumbent
from recompute.planning.solvers.integer_program import is_installed
from recompute.planning.solvers.lowest_peak import lowest_peak_plan
from recompute.planning.solvers.problem import Pair, Problem
from recompute.planning.solvers.result import Infeasible, Result
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import WITH_VIEWS, solve
from recompute.planning.solvers.sweep import sweep
from recompute.planning.solvers.view_copies import with_copies
from recompute.support.units import parse_budget
from recompute.test.benchmark_scripts import script
from recompute.test.unit.planning.solvers.exhaustive import optimum, random_problem

QUICK = Effort(rounds=10, seeds=1, tries_many_cuts=False)
SMALL_NETS: dict[str, dict[str, int]] = {
    "unet": {"depth": 2, "size": 1 << 20, "blocks": 1},
    "densenet": {"blocks": 2, "layers": 3},
    "inception": {"blocks": 2},
    "lstm": {"steps": 2},
    "experts": {"layers": 1},
    "encoder_decoder": {"layers": 1},
}


def net(name: str) -> Problem:
    planner_graphs: Any = script("solvers.planner_graphs")
    return read_graph(json.dumps(getattr(planner_graphs, name)(**SMALL_NETS[name]).finished()), name)


def plain_peak(problem: Problem) -> int:
    return evaluate(problem, sequence_of(problem, ())).peak_bytes


@pytest.mark.slow("unet", "densenet")
@pytest.mark.parametrize("name", SMALL_NETS)
def test_curves_are_monotone(name: str) -> None:
    problem = net(name)
    peak = plain_peak(problem)

    def solved(budget: int, starts: Iterable[frozenset[Pair]]) -> Result | Infeasible:
        return solve(problem, budget, "greedy", effort=QUICK)

    outcomes = sweep([peak * at // 12 for at in range(1, 13)], solved)
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    assert len(results) >= 3
    for result in results:
        evaluation = evaluate(problem, sequence_of(problem, result.pairs))
        assert evaluation.peak_bytes == result.peak_bytes <= result.budget and result.bound_percent <= result.percent
    for low, high in pairwise(results):
        assert low.peak_bytes <= high.peak_bytes and low.extra_cost >= high.extra_cost
    assert results[-1].extra_cost == 0


@pytest.mark.slow
def test_least_budget_has_a_plan() -> None:
    problem = net("unet")
    least = lowest_peak_plan(problem).peak_bytes
    outcome = solve(problem, least, effort=QUICK)
    assert isinstance(outcome, Result) and outcome.peak_bytes <= least < plain_peak(problem)


def test_sweep_is_deterministic() -> None:
    problem = net("unet")
    budget = plain_peak(problem) * 6 // 10
    first, second = (solve(problem, budget, effort=QUICK) for _ in range(2))
    assert isinstance(first, Result) and isinstance(second, Result)
    assert (first.pairs, first.bound_percent, first.provenance) == (
        second.pairs,
        second.bound_percent,
        second.provenance,
    )


@pytest.mark.skipif(not is_installed(), reason="highspy is not installed: no bounds by integer programs")
def test_view_copies_pay_if_slices_keep_a_buffer_alive() -> None:
    problem = net("unet")
    assert problem.views
    least = plain_peak(problem) * 9 // 20
    without = solve(problem, least, effort=QUICK)
    plan = solve(problem, least, WITH_VIEWS, effort=QUICK)
    assert isinstance(plan, Result) and any(label.startswith("copy:") for label in plan.problem.labels)
    evaluation = evaluate(plan.problem, sequence_of(plan.problem, plan.pairs))
    assert evaluation.peak_bytes == plan.peak_bytes <= least
    assert plan.extra_cost == evaluation.cost - problem.total_cost
    assert plan.bound_percent <= plan.percent
    assert isinstance(without, Infeasible) or plan.extra_cost < without.extra_cost


@pytest.mark.skipif(not is_installed(), reason="highspy is not installed: no bounds by integer programs")
def test_bounds_hold_for_copies_of_views() -> None:
    """Bounds hold compared with exhaustive search over each choice of views to copy."""
    from recompute.test.unit.planning.solvers.random_graphs import random_nodes

    checked = 0
    for seed in range(400):
        problem = read_graph(json.dumps({"nodes": random_nodes(seed)}))
        if not problem.views or len(problem) > 9 or checked >= 25:
            continue
        budget = plain_peak(problem) - 1
        outcome = solve(problem, budget, WITH_VIEWS, effort=QUICK)
        for count in range(len(problem.views) + 1):
            changed = with_copies(problem, problem.views[:count])
            best = optimum(changed, budget)
            if best is None:
                continue
            cost = problem.percent(best + changed.total_cost - problem.total_cost)
            if isinstance(outcome, Result):
                assert outcome.bound_percent <= cost + 1e-6
            else:
                assert not outcome.proved
        checked += 1
    assert checked >= 10


def test_interrupted_sweep_returns_the_best_so_far() -> None:
    problem = random_problem(3, 9)
    peak = plain_peak(problem)
    lines = list[str]()
    best = Incumbent(problem, peak - 1, progress=lines.append, interrupt=lambda: len(lines) > 2)
    outcome = solve(problem, peak - 1, best=best)
    assert isinstance(outcome, Infeasible) or outcome.peak_bytes < peak


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.3", 300), ("30%", 300), ("1", 1000), ("1.0", 1000), ("2B", 2), ("1kB", 1000), ("1 KiB", 1024), ("1e3B", 1000),
     ("8GiB", 8 * 2**30), (".5", 500), ("1.5MB", 1_500_000), ("min", None), (" MIN ", None), ("7b", 7)],
)  # fmt: skip
def test_budgets_are_parsed_as_bytes_or_shares(text: str, expected: int | None) -> None:
    assert parse_budget(text, 1000) == expected


@pytest.mark.parametrize("text", ["", "lots", "3x", "-1", "0", "0%", "120%", "8 GiB free", "nan", "1e", "0b", "inf"])
def test_bad_budget_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid budget '"):
        parse_budget(text, 1000)


def test_misuse_is_refused() -> None:
    problem = random_problem(1)
    for wrong in ({"solver": "best"}, {"budget": 0}):
        given: dict[str, Any] = {"problem": problem, "budget": 5} | wrong
        with pytest.raises(ValueError, match=r"is '|not 0|are for|unknown solver 'best'"):
            solve(**given)
