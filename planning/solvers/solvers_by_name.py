"""The solvers by name: functions from a problem, a budget in bytes and an effort to copies, or None if they find none.

The copies of a solver may exceed the budget. `solve` evaluates them, and adds a proven bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from . import interval_program
from .effort import Effort
from .flows import FlowBounds
from .heuristics import at_peak, chen, eviction
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
    """Run the overflow-integral greedy and reverse delete from the plain step."""
    return LocalSearch(problem).repaired(budget)


def anneal(problem: Problem, budget: int, effort: Effort) -> frozenset[Pair] | None:
    """Run the greedy solver, then ruin and recreate."""
    search = LocalSearch(problem)
    start = search.repaired(budget)
    rounds = max(20, effort.rounds_for(len(problem)))
    return search.annealed(budget, start or frozenset(), Annealing(rounds))


def mincut(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Take the copies of Lagrangian minimum cuts, then repair them and remove unnecessary copies."""
    bounds = FlowBounds(problem, budget)
    search = LocalSearch(problem)
    bounds.single_cuts()
    plans = [search.repaired(budget, pairs) for _, pairs in bounds.starts]
    return min((plan for plan in plans if plan is not None), key=problem.cost_of, default=None)


def solve_by_eviction(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Run look-ahead eviction, then repair its copies and remove unnecessary ones."""
    pairs = eviction(problem, budget)
    return None if pairs is None else LocalSearch(problem).repaired(budget, pairs)


def solve_by_windows(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Optimize the windows of the greedy plan one by one with CP-SAT, in one pass. Returns None without OR-tools."""
    pairs = LocalSearch(problem).repaired(budget)
    if pairs is None or not interval_program.available():
        return None
    for first, last in windows(problem, WINDOW_STAGES):
        pairs = interval_program.reoptimize(problem, budget, pairs=pairs, first=first, last=last, work=WINDOW_SECONDS)
    return pairs


SOLVERS: dict[str, Solver] = {
    "chen": lambda problem, budget, _: chen(problem, budget),
    "mincut": mincut,
    "at-peak": lambda problem, budget, _: at_peak(problem, budget),
    "eviction": solve_by_eviction,
    "greedy": greedy,
    "anneal": anneal,
    "windows": solve_by_windows,
}
SOLVER_NAMES = ("auto", *SOLVERS)
"""The names that users give; `auto` is the portfolio."""
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
        best: The incumbent, with its limits and its progress callback; a new one without limits if not given.
        starts: Plans to start from, for the portfolio.
        effort: The effort; `Effort()` if not given.

    Returns:
        The result, or the reason that there is no plan.

    Raises:
        ValueError: For an unknown solver, and for a budget below 1.
    """
    if solver not in (*SOLVER_NAMES, WITH_VIEWS):
        raise ValueError(f"unknown solver '{solver}'; expected one of {', '.join(SOLVER_NAMES)}")
    if budget < 1:
        raise ValueError(f"budget must be greater than 0 bytes, not {budget}")
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
    if best.evaluation is None and solver == "windows" and not interval_program.available():
        return refuse_without_ortools(problem)
    if best.evaluation is None:
        return refuse_without_plan(problem, solver)
    bounds = bounds_for(best, effort)
    return result_of(best, bounds.percent, bounds.by)
