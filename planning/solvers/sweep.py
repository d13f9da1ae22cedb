"""Solve for many budgets, as a monotone curve, and search for the least budget with a plan.

A plan is valid for every budget that is not below its peak. So each budget gets the cheapest plan within it and, among
equally cheap plans, the plan with the lowest peak: for larger budgets, costs never rise and peaks never fall. A lower
bound of the cost for a budget holds for every smaller budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .local_search import LocalSearch
from .problem import Pair, Problem
from .result import Infeasible, Result, Stop, never
from .sequence import evaluate, sequence_of
from .working_set import largest_working_set

Outcome = Result | Infeasible
BudgetSolver = Callable[[int, Iterable[frozenset[Pair]]], Outcome]
"""A solver: a function from a budget in bytes and plans to start from to an outcome."""
MAX_BUDGETS = 16
"""Maximum number of budgets that are tried to find the least."""
BUDGET_TOLERANCE = 1 / 1000
"""Tolerance of the search for the least budget, as a share of the peak of the plain step."""
NOT_TRIED = Infeasible("not tried: the search was stopped before", False, 0)


def sweep(budgets: Sequence[int], solve_within: BudgetSolver, stop: Stop = never) -> list[Outcome]:
    """Solve for each budget.

    The budgets are solved in ascending order, and the plan of each is a start for the next.

    Args:
        budgets: The budgets in bytes.
        solve_within: The solver.
        stop: Once it is true, no further budget is solved: each gets the cheapest plan so far, marked as not finished.

    Returns:
        An outcome for each budget, in the order of `budgets`.
    """
    outcomes = dict[int, Outcome]()
    plans = list[frozenset[Pair]]()
    for budget in sorted(set(budgets)):
        outcomes[budget] = outcome = NOT_TRIED if stop() else solve_within(budget, plans[-1:])
        if isinstance(outcome, Result):
            plans.append(outcome.pairs)
    results = [outcome for outcome in outcomes.values() if isinstance(outcome, Result)]
    # A bound for a larger budget holds for all smaller ones.
    chosen, bound, by = dict[int, Outcome](), 0.0, ""
    for budget in sorted(outcomes, reverse=True):
        chosen[budget] = best = _cheapest(outcomes[budget], results, budget)
        if isinstance(best, Result) and best.bound_percent >= bound:
            bound, by = best.bound_percent, best.bound_by
        elif isinstance(best, Result):
            chosen[budget] = replace(best, bound_percent=min(bound, best.percent), bound_by=by)
    return [chosen[budget] for budget in budgets]


def _cheapest(outcome: Outcome, results: Iterable[Result], budget: int) -> Outcome:
    """Return the cheapest of all results within a budget, with the bound of the outcome for this budget."""
    within = [result for result in results if result.peak_bytes <= budget]
    if not within:
        return outcome
    best = min(within, key=lambda result: (result.extra_cost, result.peak_bytes))
    bound, by, finished = 0.0, "costs are not negative", outcome is not NOT_TRIED and best.finished
    if isinstance(outcome, Result):
        bound, by, finished = outcome.bound_percent, outcome.bound_by, outcome.finished
    return replace(best, budget=budget, bound_percent=min(bound, best.percent), bound_by=by, finished=finished)


def least_budget(problem: Problem, stop: Stop = never) -> int:
    """Return the least budget in bytes for which the greedy finds a plan; see `least_plan`."""
    return least_plan(problem, stop)[0]


def least_plan(problem: Problem, stop: Stop = never) -> tuple[int, frozenset[Pair]]:
    """Return the lowest peak in bytes for which the greedy finds a plan, and this plan.

    The search is a bisection above the largest working set. Each plan is a start of the next search, so that a single
    search with this budget may find no plan.
    """
    first_stages = sorted({problem.earliest_stage, 0 if problem.allows_forward_copies else problem.earliest_stage})
    searches = [LocalSearch(problem, earliest) for earliest in reversed(first_stages)]
    pairs = frozenset[Pair]()
    plain_bytes = evaluate(problem, sequence_of(problem, pairs)).peak_bytes
    # A plan exists for `feasible` bytes, and none was found for `infeasible` bytes.
    infeasible, feasible = largest_working_set(problem).bytes - 1, plain_bytes
    for _ in range(MAX_BUDGETS):
        if feasible - infeasible <= max(1, int(BUDGET_TOLERANCE * plain_bytes)) or stop():
            break
        middle = (infeasible + feasible) // 2
        within = next(filter(None, (_plans_within(search, middle, pairs) for search in searches)), None)
        if within:
            feasible, pairs = min(within, key=lambda plan: plan[0])
        else:
            infeasible = middle
    return feasible, pairs


def _plans_within(search: LocalSearch, budget: int, pairs: frozenset[Pair]) -> list[tuple[int, frozenset[Pair]]]:
    """Return the plans of the greedy within the budget, from the given copies and from the plain step, with their peaks
    in bytes."""
    problem, starts = search.problem, (pairs, frozenset[Pair]())
    plans = [plan for start in starts if (plan := search.repaired(budget, start)) is not None]
    peaks = [evaluate(problem, sequence_of(problem, plan)).peak_bytes for plan in plans]
    return [(peak, plan) for peak, plan in zip(peaks, plans, strict=True) if peak <= budget]
