"""Solve a problem for many budgets, so that the results form a monotone curve.

A plan is valid for every budget that is not below its peak. So each budget gets the cheapest plan within it and, among
equally cheap plans, the plan with the lowest peak. As budgets grow, costs never rise and peaks never fall. A lower
bound on the cost for one budget is valid for every smaller budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .problem import Pair
from .result import Infeasible, Result, Stop, never_stop

Outcome = Result | Infeasible
BudgetSolver = Callable[[int, Iterable[frozenset[Pair]]], Outcome]
"""A function that takes a budget in bytes and the copies of plans to start from, and returns an outcome."""
NOT_TRIED = Infeasible("not tried, because the search was stopped earlier", False, 0, finished=False)
OutcomeReport = Callable[[int, Outcome], None]
"""A callback for the outcome of a budget in bytes, as soon as it is known."""


def ignore_outcome(_budget: int, _outcome: Outcome) -> None:
    """Ignore the outcome of a budget."""
    return None


def sweep(
    budgets: Sequence[int],
    solve_within: BudgetSolver,
    stop: Stop = never_stop,
    report: OutcomeReport = ignore_outcome,
) -> list[Outcome]:
    """Solve for each budget.

    Budgets are solved in ascending order. The plan for each budget is a start for the next budget.

    Args:
        budgets: The budgets in bytes.
        solve_within: The solver.
        stop: A predicate that ends the search. Once it is true, each remaining budget gets the cheapest plan so far,
            marked as not finished.
        report: A callback for the outcome of each budget, in ascending order. The search for larger budgets may still
            lower the cost of this outcome or raise its bound.

    Returns:
        The outcome for each budget, in the order of `budgets`.
    """
    outcomes, results = dict[int, Outcome](), list[Result]()
    for budget in sorted(set(budgets)):
        starts = [result.pairs for result in results[-1:]]
        outcomes[budget] = outcome = NOT_TRIED if stop() else solve_within(budget, starts)
        if isinstance(outcome, Result):
            results.append(outcome)
        report(budget, _cheapest(outcome, results, budget))
    # A bound for a larger budget is valid for all smaller budgets.
    chosen, bound, by = dict[int, Outcome](), 0.0, ""
    for budget in sorted(outcomes, reverse=True):
        chosen[budget] = best = _cheapest(outcomes[budget], results, budget)
        if isinstance(best, Result) and best.bound_percent >= bound:
            bound, by = best.bound_percent, best.bound_by
        elif isinstance(best, Result):
            chosen[budget] = replace(best, bound_percent=min(bound, best.percent), bound_by=by)
    return [chosen[budget] for budget in budgets]


def _cheapest(outcome: Outcome, results: Iterable[Result], budget: int) -> Outcome:
    """Return the cheapest result within a budget, with the bound from `outcome`, the outcome for this budget."""
    within = [result for result in results if result.peak_bytes <= budget]
    if not within:
        return outcome
    best = min(within, key=lambda result: (result.extra_cost, result.peak_bytes))
    bound, by, finished = 0.0, "costs are not negative", outcome.finished and best.finished
    if isinstance(outcome, Result):
        bound, by, finished = outcome.bound_percent, outcome.bound_by, outcome.finished
    return replace(best, budget=budget, bound_percent=min(bound, best.percent), bound_by=by, finished=finished)
