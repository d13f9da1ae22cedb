"""Plans meet their budgets, bounds are not above the optimum of exhaustive search, and no feasible budget is
rejected."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from recompute.planning.solvers import cut_bounds, stage_program
from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.flows import FlowBounds
from recompute.planning.solvers.integer_program import is_installed, solve
from recompute.planning.solvers.local_search import LocalSearch
from recompute.planning.solvers.problem import Problem
from recompute.planning.solvers.result import Result
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import SOLVER_NAMES
from recompute.planning.solvers.solvers_by_name import solve as solved
from recompute.planning.solvers.working_set import largest_working_set
from recompute.test.unit.planning.solvers.exhaustive import optimum, random_problem

pytestmark = pytest.mark.slow

PROBLEMS = 2000
SLACK = 1e-6
needs_highs = pytest.mark.skipif(not is_installed(), reason="highspy is not installed: no integer programs")


def with_budget(seed: int) -> tuple[Problem, int] | None:
    """Return a random problem and a budget, or None where the budget would be trivial or impossible."""
    problem = random_problem(seed)
    plain = evaluate(problem, sequence_of(problem, ())).peak_bytes
    least = largest_working_set(problem).bytes
    return (problem, random.Random(seed).randint(least, plain - 1)) if least < plain else None


def program_bound(problem: Problem, budget: int, draw: random.Random) -> float:
    """Return the lower bound of the integer program, in percent of the step's cost; infinite where it has no
    solution."""
    cuts = draw.sample(range(len(problem)), draw.randint(1, 3))
    program = stage_program.stage_program(problem, budget, cuts).program
    answer = solve(program, integral=draw.random() < 0.5)
    return float("inf") if answer.infeasible else answer.bound


def relaxed_bound(problem: Problem, budget: int, cuts: list[int]) -> float:
    answer = solve(stage_program.stage_program(problem, budget, cuts).program, integral=False)
    return float("inf") if answer.infeasible else answer.bound


def excess(problem: Problem, budget: int, seed: int) -> float:
    """Return how far the bound lies above the optimum, in percent of the step's cost; any positive number is an
    error."""
    best = optimum(problem, budget)
    return 0.0 if best is None else program_bound(problem, budget, random.Random(seed)) - problem.percent(best)


def given_problems(first: int, count: int) -> Iterator[tuple[int, Problem, int]]:
    """Generate `count` problems that have a budget, with their seeds, from the seed `first` on."""
    seed = first
    while count:
        if (given := with_budget(seed)) is not None:
            count -= 1
            yield seed, *given
        seed += 1


@pytest.mark.slow("1", "3", "5", "7")
@needs_highs
@pytest.mark.parametrize("first", range(0, PROBLEMS, 250))
def test_bounds_are_not_above_the_optimum(first: int) -> None:
    for seed, problem, budget in given_problems(2 * first, 250):
        assert excess(problem, budget, seed) <= SLACK, f"the bound of problem {seed} is above its optimum"


@pytest.mark.parametrize("first", range(0, 600, 300))
def test_plans_meet_budget_and_cost_at_least_optimum(first: int) -> None:
    optimal = missed = result = 0
    for seed, problem, budget in given_problems(2 * first, 300):
        best, pairs = optimum(problem, budget), LocalSearch(problem).repair(budget)
        if pairs is None:
            missed += best is not None
            continue
        assert best is not None, f"problem {seed} has no schedule at all"
        assert evaluate(problem, sequence_of(problem, pairs)).peak_bytes <= budget
        assert problem.cost_of(pairs) >= best
        result += 1
        optimal += problem.cost_of(pairs) == best
    assert optimal >= 0.9 * result and missed <= 0.2 * result


@pytest.mark.parametrize("solver", SOLVER_NAMES)
def test_every_solver_and_bound_brackets_the_optimum(solver: str) -> None:
    for _, problem, budget in given_problems(0, 36):
        best = optimum(problem, budget)
        result = solved(problem, budget, solver, effort=Effort(rounds=10, seeds=1))
        if isinstance(result, Result):
            assert best is not None
            assert result.extra_cost >= best and result.bound_percent <= problem.percent(best) + SLACK
            assert evaluate(problem, sequence_of(problem, result.pairs)).peak_bytes == result.peak_bytes <= budget
        else:
            assert best is None or not result.proved


def test_minimum_cuts_are_lower_bounds() -> None:
    for seed, problem, budget in given_problems(0, 90):
        bounds = FlowBounds(replace(problem, earliest_stage=random.Random(seed).randrange(len(problem) - 1)), budget)
        bounds.solve_single_cuts()
        best = optimum(problem, budget)
        assert best is None or bounds.percent <= problem.percent(best) + SLACK


@needs_highs
@pytest.mark.parametrize("wrong", ["a copy for each result", "memory beside it", "outputs at once"])
def test_wrong_bounds_are_noticed(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the integer program charges or holds too much, the comparison finds a bound above the optimum."""
    true = stage_program.stage_program

    def spoilt(problem: Problem, budget: int, cuts: list[int]) -> stage_program.StageProgram:
        if wrong == "memory beside it":
            return true(problem, budget - 1, cuts)
        if wrong == "outputs at once":
            return true(replace(problem, is_output=np.ones_like(problem.is_output)), budget, cuts)
        result = np.diff(problem.result_start)
        actual = true(replace(problem, costs=problem.costs * result), budget, cuts)
        scale = float((problem.costs * result).sum()) / problem.total_cost
        return replace(actual, program=replace(actual.program, costs=actual.program.costs * scale))

    monkeypatch.setattr(stage_program, "stage_program", spoilt)
    assert any(excess(problem, budget, seed) > SLACK for seed, problem, budget in given_problems(0, 250))


@needs_highs
def test_implied_variables_need_no_integrality() -> None:
    for seed, problem, budget in given_problems(0, 120):
        draw = random.Random(seed)
        cuts = draw.sample(range(len(problem)), draw.randint(1, 4))
        program = stage_program.stage_program(problem, budget, cuts).program
        value, not_asked = solve(replace(program, following=())), solve(program)
        assert value.infeasible == not_asked.infeasible
        assert value.infeasible or abs(value.objective - not_asked.objective) < 1e-4


@needs_highs
def test_more_cuts_do_not_weaken_the_relaxation() -> None:
    """More cuts do not weaken the relaxation: without the rows (6), two half runs would pass for a whole one."""
    for seed, problem, budget in given_problems(0, 120):
        draw = random.Random(seed)
        cuts = draw.sample(range(len(problem)), draw.randint(2, 4))
        alone = [relaxed_bound(problem, budget, [cut]) for cut in cuts]
        together = relaxed_bound(problem, budget, cuts)
        assert together >= max(alone) - SLACK, f"the cuts {cuts} of problem {seed} say less than one of them"


@needs_highs
def test_plans_are_points_of_the_program() -> None:
    """Plans within the budget satisfy all rows of the integer program, so that its optimum is a bound."""
    for seed, problem, budget in given_problems(0, 180):
        pairs = LocalSearch(problem).repair(budget)
        if pairs is None:
            continue
        draw = random.Random(seed)
        stages = stage_program.stage_program(problem, budget, draw.sample(range(len(problem)), draw.randint(1, 4)))
        point, rows = stages.point(problem, pairs), stages.program.rows
        for row, low in enumerate(rows.low):
            entries = range(rows.starts[row], rows.starts[row + 1])
            assert sum(rows.weights[k] * point[rows.columns[k]] for k in entries) >= low - 1e-9
        assert float(stages.program.costs @ point) <= problem.percent(problem.cost_of(pairs)) + 1e-9


def test_cuts_are_positions_of_operations() -> None:
    for seed in range(50):
        problem = random_problem(seed)
        assert set(cut_bounds.cuts_to_try(problem)) <= set(range(len(problem)))


def test_added_cuts_exclude_every_given_overflow() -> None:
    """Cuts are added where bytes above the budget are not excluded yet: most operations first, most bytes among
    equals."""
    messages = [np.array([0, 0, 5, 0, 0, 1]), np.array([0, 0, 3, 9, 0, 0]), np.array([0, 0, 0, 9, 0, 7])]
    assert cut_bounds.add_separating_cuts((0,), messages, 0) == (0, 2, 3)
    assert cut_bounds.add_separating_cuts((0,), messages[:1], 2) == (0, 5), "operation 2 is near the first cut"
    assert cut_bounds.add_separating_cuts((0,), [np.array([0, 4, 0])], 2) == (0, 1), "nothing else is left"
    assert cut_bounds.add_separating_cuts((3,), messages[1:], 0) == (3,), "all is cut off"
    assert cut_bounds.add_separating_cuts((1,), [np.zeros(6, np.int64)], 0) == (1,), "what keeps the budget cannot be"


def test_overflow_is_excess_over_budget() -> None:
    for seed, problem, budget in given_problems(0, 60):
        over = cut_bounds.overflow(problem, (), budget)
        plain = evaluate(problem, sequence_of(problem, ()))
        assert over.max() == plain.peak_bytes - budget, f"problem {seed}"
        assert (over > 0).sum() == (plain.bytes_at > budget).sum()
        listed = cut_bounds.places_above_budget(problem, (), budget)
        assert over[listed[0]] == over.max() and all(over[at] > 0 for at in listed)


def test_no_schedule_is_below_the_proven_minimum() -> None:
    """No schedule is below the proven minimum, with copies at any position or in the backward pass only."""
    pinned = 0
    for seed in range(400):
        problem, draw = random_problem(seed), random.Random(seed)
        least = largest_working_set(problem).bytes
        pinned += least > int(problem.working_bytes.max())
        if not problem.earliest_stage:
            assert optimum(problem, least - 1) is None, f"problem {seed} needs less than its minimum"
        stages = range(problem.earliest_stage, len(problem) + 1)
        can = [(t, i) for t in stages for i in range(min(t, len(problem))) if problem.may_run_again[i]]
        for _ in range(20):
            pairs = draw.sample(can, draw.randint(0, len(can)))
            assert evaluate(problem, sequence_of(problem, pairs)).peak_bytes >= least
    assert pinned > 20


def test_proven_minimum_is_reached() -> None:
    """On some problems, dropping every value that can be recomputed reaches the proven minimum."""
    reached = 0
    for seed in range(200):
        problem = random_problem(seed)
        pairs = LocalSearch(problem).repair(largest_working_set(problem).bytes)
        reached += pairs is not None
    assert reached > 50
