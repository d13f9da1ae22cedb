"""The lower bound from pairs of operations is valid, and exceeds that from single operations."""

from __future__ import annotations

from recompute.planning.solvers.problem import OperationRow, problem_of
from recompute.planning.solvers.two_point_bound import two_point_bound
from recompute.planning.solvers.working_set import largest_working_set
from recompute.test.unit.planning.solvers.exhaustive import optimum, random_problem

PROBLEMS = 3000


def test_no_schedule_peaks_below_bound():
    proved = more = 0
    for seed in range(PROBLEMS):
        problem = random_problem(seed)
        result = two_point_bound(problem)
        if result.bytes > 1:
            assert optimum(problem, result.bytes - 1) is None, seed
            proved += 1
            more += result.bytes > largest_working_set(problem).bytes
    assert proved > PROBLEMS // 3 and more > 15


def test_bound_is_reached_by_schedules():
    """On many problems a schedule needs exactly the bound, so that no higher bound would hold."""
    reached = 0
    for seed in range(300):
        problem = random_problem(seed)
        least = max(two_point_bound(problem).bytes, largest_working_set(problem).bytes)
        reached += least > 0 and optimum(problem, least) is not None
    assert reached > 100


def test_bound_of_a_small_problem_is_as_counted():
    """The bound is 24 bytes: `d` runs while `a` is alive, or `a` is recomputed from `i` while `d` is alive; 8 bytes
    each."""
    rows = [
        OperationRow("i", 1, [], [8], 0, True, False),
        OperationRow("a", 1, [0], [8], 0, True, False),
        OperationRow("c", 1, [], [8], 0, False, True),
        OperationRow("d", 1, [2], [8], 0, False, True),
        OperationRow("r", 1, [1, 3], [0], 0, False, True),
    ]
    problem = problem_of(rows, (), [row.name for row in rows], earliest_stage=2)
    result = two_point_bound(problem)
    assert (result.bytes, result.before, result.reader, result.value) == (24, 3, 4, 1)
    assert result.clause(problem, lambda op: problem.names[op]) == (
        "while d executes: r reads a result of a, and this result is either live then or recomputed later"
    )
    assert largest_working_set(problem).bytes == 16 and optimum(problem, 23) is None
