"""The search of all sets of live storages agrees with exhaustive search, and an incomplete search proves nothing."""

from __future__ import annotations

import pytest

from recompute.planning.solvers import live_sets
from recompute.planning.solvers.live_sets import TooManyStates, copies_within
from recompute.planning.solvers.problem import OperationRow, Problem, problem_of
from recompute.planning.solvers.sequence import evaluate, sequence_of
from recompute.planning.solvers.working_set import largest_working_set
from recompute.test.unit.planning.solvers.exhaustive import optimum, random_problem


def peak(problem: Problem, budget: int) -> int | None:
    """Return the peak of the copies that are found; None if there are provably none."""
    pairs = copies_within(problem, budget)
    if pairs is None:
        return None
    assert all(op < stage and stage >= problem.earliest_stage and problem.may_run_again[op] for stage, op in pairs)
    return evaluate(problem, sequence_of(problem, pairs)).peak_bytes


@pytest.mark.parametrize("seed", range(120))
def test_copies_keep_the_budget_on_random_problems(seed: int) -> None:
    problem = random_problem(seed, 8)
    plain = evaluate(problem, sequence_of(problem, ())).peak_bytes
    for budget in range(largest_working_set(problem).bytes, plain + 1):
        possible = optimum(problem, budget, problem.earliest_stage) is not None
        try:
            reached = peak(problem, budget)
        except TooManyStates:  # the order of copies within a stage is fixed for plans, and free for proofs
            assert possible
            continue
        assert (reached is not None) == possible
        assert reached is None or reached <= budget


def chain(length: int) -> Problem:
    """Return a forward chain of equal storages, and its backward pass, which reads each of them."""
    rows = [OperationRow(f"f{at}", 1, [at - 1] if at else [], [64]) for at in range(length)]
    rows += [
        OperationRow(f"b{at}", 1, [length - 1 - at, *([length + at - 1] if at else [])], [64], is_backward=True)
        for at in range(length)
    ]
    return problem_of(rows, [2 * length - 1])


def test_least_peak_of_a_chain_is_three_storages() -> None:
    """Three storages suffice if each operand of the backward pass is computed from the start again."""
    assert peak(chain(12), 3 * 64) == 3 * 64
    assert peak(chain(12), 3 * 64 - 1) is None


def test_dropped_states_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(12, 8)
    budget = largest_working_set(problem).bytes
    assert peak(problem, budget) is None
    monkeypatch.setattr(live_sets, "MAX_STATES", 2)
    with pytest.raises(TooManyStates, match="left out"):
        copies_within(problem, budget)


def test_search_skips_problems_with_many_storages() -> None:
    with pytest.raises(TooManyStates, match=r"\d+ storages"):
        copies_within(chain(70), 64 * 64)


def test_stopped_search_proves_nothing() -> None:
    with pytest.raises(TooManyStates, match="stopped"):
        copies_within(chain(12), 4 * 64, lambda: True)


def test_small_storages_count_in_the_final_peak() -> None:
    """Copies meet the budget even with forty storages below a thousandth of it, which the search does not track."""
    rows = [OperationRow(f"f{at}", 1, [at - 1] if at else [], [10_000]) for at in range(6)]
    rows += [OperationRow(f"small{at}", 1, [], [30]) for at in range(40)]
    last = len(rows) - 1
    rows += [
        OperationRow(f"b{at}", 1, [5 - at, 6 + at, last + at if at else 5], [10_000], is_backward=True)
        for at in range(6)
    ]
    problem = problem_of(rows, [last + 6])
    for budget in range(39_000, 51_000, 1_000):
        try:
            reached = peak(problem, budget)
        except TooManyStates:
            continue
        assert reached is None or reached <= budget
