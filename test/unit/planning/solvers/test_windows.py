"""Reoptimized copies of a window are as cheap as any choice, within the budget, and deterministic."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations
from typing import Any

import pytest

from recompute.planning.solvers import interval_program
from recompute.planning.solvers.effort import Effort
from recompute.planning.solvers.incumbent import Incumbent
from recompute.planning.solvers.local_search import LocalSearch
from recompute.planning.solvers.problem import Pair, Problem
from recompute.planning.solvers.result import Infeasible
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.solvers_by_name import solve
from recompute.planning.solvers.window import StageWindow, window_of, windows
from recompute.test.unit.planning.solvers.exhaustive import random_problem
from recompute.test.unit.planning.solvers.test_optimal import given_problems

needs_ortools = pytest.mark.skipif(
    not interval_program.is_installed(), reason="ortools is not installed: no interval model"
)
MOST = 9
"""Choices of a window that are tried one by one: two to this power."""


def peak(problem: Problem, pairs: frozenset[Pair]) -> int:
    return evaluate(problem, sequence_of(problem, pairs)).peak_bytes


def cheapest(problem: Problem, budget: int, pairs: frozenset[Pair], first: int, last: int) -> int | None:
    """Return the least cost over all sets of copies in the window, or None where there are too many sets.

    Sets with one more copy are also tried, as a check that is independent of the search.
    """
    n = len(problem)
    outside = frozenset([pair for pair in pairs if not first <= pair[0] < last])
    can = [(t, op) for t in range(first, last) for op in range(min(t, n)) if problem.may_run_again[op]]
    if len(can) > MOST:
        return None
    every = [frozenset(some) for count in range(len(can) + 1) for some in combinations(can, count)]
    return min(problem.cost_of(outside | item) for item in every if peak(problem, outside | item) <= budget)


def small_windows(count: int) -> Iterator[tuple[Problem, int, frozenset[Pair], int, int, int]]:
    for _, problem, budget in given_problems(0, count):
        pairs = LocalSearch(problem).repair(budget)
        if pairs is None:
            continue
        for first, last in windows(problem, 2):
            best = cheapest(problem, budget, pairs, first, last)
            if best is not None:
                yield problem, budget, pairs, first, last, best


def pairs_with_added_copies(
    problem: Problem, budget: int, pairs: frozenset[Pair], first: int, last: int
) -> frozenset[Pair]:
    """Return the pairs with every copy added to the window that the budget has room for."""
    for item in [
        (t, op) for t in range(first, last) for op in range(min(t, len(problem))) if problem.may_run_again[op]
    ]:
        if peak(problem, pairs | {item}) <= budget:
            pairs = pairs | {item}
    return pairs


@pytest.mark.slow
@needs_ortools
def test_window_is_as_cheap_as_exhaustive_search() -> None:
    seen = improved = 0
    for problem, budget, pairs, first, last, best in small_windows(150):
        start = pairs_with_added_copies(problem, budget, pairs, first, last)
        window = window_of(problem, start, first, last)
        result = interval_program.cheaper_copies(problem, budget, start, window, 5.0) or start
        assert peak(problem, result) <= budget
        assert problem.cost_of(result) == best
        assert {entry for entry in result if not first <= entry[0] < last} == {
            pair for pair in pairs if not first <= pair[0] < last
        }
        seen += 1
        improved += problem.cost_of(result) < problem.cost_of(start)
    assert seen >= 50 and improved >= 20


def hint_is_complete(problem: Problem, budget: int, pairs: Collection[Pair], window: StageWindow) -> bool:
    """Return whether the hints of a window cover all variables, and form a solution of the model. See `cheaper_copies`
    for the arguments."""
    from ortools.sat.python import cp_model

    inside = [(t, op) for t, op in pairs if window.first <= t < window.last]
    model = interval_program._Model(cp_model, problem, budget, window, inside).model  # pyright: ignore[reportPrivateUsage]
    solver: Any = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.fix_variables_to_their_hinted_value = True
    proto = model.proto
    complete = len(proto.solution_hint.vars) == len(proto.variables)
    return complete and solver.solve(model) == cp_model.OPTIMAL


@needs_ortools
def test_present_copies_are_a_complete_hint() -> None:
    """CP-SAT gets a value for every variable, so that it accepts the present copies as a feasible solution at once."""
    for seed in range(40):
        problem = random_problem(seed)
        pairs = LocalSearch(problem).repair(evaluate(problem, sequence_of(problem, ())).peak_bytes - 1)
        for first, last in windows(problem, 4) if pairs else ():
            window = window_of(problem, pairs or (), first, last)
            assert hint_is_complete(problem, peak(problem, pairs or frozenset()), pairs or (), window)


@needs_ortools
def test_window_search_is_deterministic() -> None:
    for problem, budget, pairs, first, last, _ in list(small_windows(40))[:10]:
        start = pairs_with_added_copies(problem, budget, pairs, first, last)
        window = window_of(problem, start, first, last)
        betters = [interval_program.cheaper_copies(problem, budget, start, window, 0.5) for _ in range(2)]
        assert betters[0] == betters[1]


def test_window_without_copy_stages_is_rejected() -> None:
    problem = random_problem(3)
    with pytest.raises(ValueError, match="it must be non-empty and lie within stages"):
        window_of(problem, (), 2, len(problem) + 2)


def test_missing_or_tools_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interval_program, "is_installed", lambda: False)
    refused = next(
        plan
        for _, problem, budget in given_problems(0, 5)
        if isinstance(plan := solve(problem, budget, "windows"), Infeasible)
    )
    assert not refused.proved
    assert refused.reason == "windows needs OR-tools: pip install 'xdsl-recompute[plan]'"


@pytest.mark.parametrize("there", [True, False])
def test_auto_reoptimizes_windows_if_the_bound_is_far(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if there and not interval_program.is_installed():
        pytest.skip("ortools is not installed: no interval model")
    monkeypatch.setattr(interval_program, "is_installed", lambda: there)
    message = list[str]()
    for _, problem, budget in given_problems(0, 30):
        effort = Effort(rounds=1, seeds=1, nodes=1)
        result = solve(problem, budget, best=Incumbent(problem, budget, progress=message.append), effort=effort)
        assert isinstance(result, Infeasible) or result.peak_bytes <= budget
    assert any(line.startswith("stages ") for line in message) == there
    assert ("OR-tools is not installed: windows of stages are not re-optimized" in message) != there
