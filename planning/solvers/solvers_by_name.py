"""The solvers by name. A solver is a function of a problem, a budget in bytes and an effort. It returns copies, or None
if it finds none.

The copies that a solver returns may exceed the budget. `solve` evaluates them, and adds a proven bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from . import interval_program
from .effort import Effort
from .flows import FlowBounds
from .heuristics import eviction, greedy_at_peak, solve_by_equal_segments
from .incumbent import Incumbent
from .local_search import Annealing, LocalSearch
from .portfolio import PLAIN, WINDOW_SECONDS, WINDOW_STAGES, bounds_for, portfolio_result, result_of
from .portfolio_with_views import portfolio_result_with_views
from .problem import Pair, Problem
from .provenance import Provenance
from .result import Infeasible, Result, refusal, refuse_without_ortools, refuse_without_plan
from .window import windows

Solver = Callable[[Problem, int, Effort], frozenset[Pair] | None]


def greedy(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Return copies from the greedy search, which starts from the plain step, after reverse delete has removed
    unnecessary copies."""
    return LocalSearch(problem).repair(budget)


def anneal(problem: Problem, budget: int, effort: Effort) -> frozenset[Pair] | None:
    """Return copies from the solver `greedy`, improved by ruin and recreate."""
    search = LocalSearch(problem)
    start = search.repair(budget)
    rounds = max(20, effort.rounds_for(len(problem)))
    return search.anneal(budget, start or frozenset(), Annealing(rounds))


def mincut(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Return the cheapest copies from minimum cuts with Lagrangian prices, after repairing them and removing
    unnecessary copies."""
    bounds = FlowBounds(problem, budget)
    search = LocalSearch(problem)
    bounds.solve_single_cuts()
    plans = [search.repair(budget, pairs) for _, pairs in bounds.starts]
    return min((plan for plan in plans if plan is not None), key=problem.cost_of, default=None)


def solve_by_eviction(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Return copies from look-ahead eviction, after repairing them and removing unnecessary copies."""
    pairs = eviction(problem, budget)
    return None if pairs is None else LocalSearch(problem).repair(budget, pairs)


def solve_by_windows(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Return copies from the greedy solver, after CP-SAT has re-optimized each window once; None without OR-tools."""
    pairs = LocalSearch(problem).repair(budget)
    if pairs is None or not interval_program.is_installed():
        return None
    for first, last in windows(problem, WINDOW_STAGES):
        pairs = interval_program.reoptimize(problem, budget, pairs=pairs, first=first, last=last, work=WINDOW_SECONDS)
    return pairs


SOLVERS: dict[str, Solver] = {
    "chen": lambda problem, budget, _: solve_by_equal_segments(problem, budget),
    "mincut": mincut,
    "at-peak": lambda problem, budget, _: greedy_at_peak(problem, budget),
    "eviction": solve_by_eviction,
    "greedy": greedy,
    "anneal": anneal,
    "windows": solve_by_windows,
}
SOLVER_NAMES = ("auto", *SOLVERS)
"""The solver names that users can give; `auto` is the portfolio."""
WITH_VIEWS = "auto with copies of views"
"""The name of the portfolio with copies of views; on the command line, `--view-copies=on`."""


def solve(
    problem: Problem,
    budget: int,
    solver: str = "auto",
    best: Incumbent | None = None,
    starts: Iterable[Collection[Pair]] = (),
    effort: Effort | None = None,
) -> Result | Infeasible:
    """Return the cheapest copies that the solver finds within the budget, with a proven bound.

    Args:
        problem: The problem.
        budget: The budget in bytes.
        solver: A name in `SOLVER_NAMES`, or `WITH_VIEWS`.
        best: The incumbent, with its limits and its progress callback. If not given, the search has no limits.
        starts: The copies of plans to start from; only the portfolio uses them.
        effort: The effort; `Effort()` if not given.

    Returns:
        The result, or the reason why there is no plan.

    Raises:
        ValueError: If the solver is unknown, or the budget is below 1.
    """
    if solver not in (*SOLVER_NAMES, WITH_VIEWS):
        raise ValueError(f"unknown solver '{solver}'; expected one of {', '.join(SOLVER_NAMES)}")
    if budget < 1:
        raise ValueError(f"budget must be at least 1 byte, not {budget}")
    best = best or Incumbent(problem, budget)
    if solver == "auto":
        return portfolio_result(best, starts, effort)
    if solver == WITH_VIEWS:
        return portfolio_result_with_views(best, starts, effort)
    refused = refusal(problem, budget)
    if refused is not None:
        return refused
    effort = effort or Effort()
    if not best.offer((), PLAIN):
        best.offer(SOLVERS[solver](problem, budget, effort), Provenance(solver))
    if best.evaluation is None and solver == "windows" and not interval_program.is_installed():
        return refuse_without_ortools(problem)
    if best.evaluation is None:
        return refuse_without_plan(problem, solver)
    bounds = bounds_for(best, effort)
    return result_of(best, bounds.percent, bounds.bound_by)
