"""The solvers by name: each a function from a problem and a budget to copies, or None where it finds none.

What they find is evaluated by whoever runs them; `solve` does, and puts the proven bound beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from . import interval_program
from .at_peak import at_peak
from .auto import PLAIN, WIDTH, WORK, auto, bounds_for, result_of
from .by_views import auto_with_views
from .chen import chen
from .effort import Effort
from .eviction import eviction
from .flows import FlowBounds
from .incumbent import Incumbent
from .problem import Pair, Problem
from .refusals import not_installed, nothing_found, refusal
from .result import Refusal, Result
from .search import Search
from .window import windows

Solver = Callable[[Problem, int, Effort], frozenset[Pair] | None]


def greedy(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Overflow-integral greedy and reverse delete, from nothing."""
    return Search(problem).repaired(budget)


def anneal(problem: Problem, budget: int, effort: Effort) -> frozenset[Pair] | None:
    """Several copies of what pays: the greedy, then ruin and recreate."""
    search = Search(problem)
    found = search.repaired(budget)
    rounds = max(20, effort.rounds_for(len(problem)))
    return search.annealed(budget, found or frozenset(), rounds)


def mincut(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Lagrangian minimum cuts between saving and computing again, repaired and cleaned."""
    bounds, search = FlowBounds(problem, budget), Search(problem)
    bounds.single_cuts()
    found = [search.repaired(budget, pairs) for _, pairs in bounds.starts]
    return min((one for one in found if one is not None), key=problem.cost_of, default=None)


def evicted(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """Look-ahead eviction, repaired and cleaned."""
    found = eviction(problem, budget)
    return None if found is None else Search(problem).repaired(budget, found)


def windowed(problem: Problem, budget: int, _: Effort) -> frozenset[Pair] | None:
    """The greedy's copies, chosen anew window by window with CP-SAT, once through the step. None without OR-tools."""
    found = Search(problem).repaired(budget)
    if found is None or not interval_program.available():
        return None
    for first, last in windows(problem, WIDTH):
        found = interval_program.chosen_anew(problem, budget, found, first, last, WORK)
    return found


SOLVERS: dict[str, Solver] = {
    "chen": lambda problem, budget, _: chen(problem, budget),
    "mincut": mincut,
    "at-peak": lambda problem, budget, _: at_peak(problem, budget),
    "eviction": evicted,
    "greedy": greedy,
    "anneal": anneal,
    "windows": windowed,
}
NAMES = ("auto", *SOLVERS)


def solve(
    problem: Problem,
    budget: int,
    solver: str = "auto",
    best: Incumbent | None = None,
    starts: Iterable[Collection[Pair]] = (),
    effort: Effort | None = None,
    view_copies: bool = False,
) -> Result | Refusal:
    """The cheapest copies that the solver finds within the budget, beside a proven bound. `best`: where progress, a
    clock and an interrupt come in. Raises `ValueError` for an unknown solver or a budget below 1."""
    if solver not in NAMES:
        raise ValueError(f"solver is '{solver}', not one of {', '.join(NAMES)}")
    if view_copies and solver != "auto":
        raise ValueError(f"copies of views are for the solver 'auto', not for '{solver}'")
    if budget < 1:
        raise ValueError(f"budget is {budget}: it has to be above 0 bytes")
    best = best or Incumbent(problem, budget)
    if solver == "auto":
        return auto_with_views(best, starts, effort) if view_copies else auto(best, starts, effort)
    refused = refusal(problem, budget)
    if refused is not None:
        return refused
    effort = effort or Effort()
    if not best.offer((), PLAIN):
        best.offer(SOLVERS[solver](problem, budget, effort), solver)
    if best.evaluation is None and solver == "windows" and not interval_program.available():
        return not_installed(problem)
    if best.evaluation is None:
        return nothing_found(problem, solver)
    bounds = bounds_for(best, effort)
    return result_of(best, bounds.percent, bounds.by)
