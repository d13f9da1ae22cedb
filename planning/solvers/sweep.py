"""Plans for many budgets, as a monotone curve, and the least budget with a plan.

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
Solved = Callable[[int, Iterable[frozenset[Pair]]], Outcome]
"""A solver: a function from a budget in bytes and plans to start from to an outcome."""
MAX_BUDGETS = 16
"""Maximum number of budgets that are tried to find the least."""
BUDGET_TOLERANCE = 1 / 1000
"""Tolerance of the search for the least budget, as a share of the peak of the plain step."""
NOT_TRIED = Infeasible("not tried: the search was stopped before", False, 0)


def sweep(budgets: Sequence[int], solved: Solved, stop: Stop = never) -> list[Outcome]:
    """Return an outcome for each budget, in the order of `budgets`.

    The budgets are solved in ascending order, and the plan of each is a start for the next. Once `stop` is true, no
    further budget is solved: each gets the cheapest plan so far, marked as not finished.
    """
    outcomes, plans = dict[int, Outcome](), list[frozenset[Pair]]()
    for budget in sorted(set(budgets)):
        outcomes[budget] = outcome = NOT_TRIED if stop() else solved(budget, plans[-1:])
        if isinstance(outcome, Result):
            plans.append(outcome.pairs)
    results = [outcome for outcome in outcomes.values() if isinstance(outcome, Result)]
    chosen, bound, by = dict[int, Outcome](), 0.0, ""
    for budget in sorted(outcomes, reverse=True):
        chosen[budget] = best = _cheapest(outcomes[budget], results, budget)
        if isinstance(best, Result) and best.bound_percent >= bound:
            bound, by = best.bound_percent, best.bound_by
        elif isinstance(best, Result):
            chosen[budget] = replace(best, bound_percent=min(bound, best.percent), bound_by=by)
    return [chosen[budget] for budget in budgets]


def _cheapest(own: Outcome, results: Iterable[Result], budget: int) -> Outcome:
    within = [result for result in results if result.peak_bytes <= budget]
    if not within:
        return own
    best = min(within, key=lambda result: (result.extra_cost, result.peak_bytes))
    bound, by = (own.bound_percent, own.bound_by) if isinstance(own, Result) else (0.0, "nothing is free")
    finished = own.finished if isinstance(own, Result) else own is not NOT_TRIED and best.finished
    return replace(best, budget=budget, bound_percent=min(bound, best.percent), bound_by=by, finished=finished)


def least_budget(problem: Problem, stop: Stop = never) -> int:
    """Return the least budget in bytes for which the greedy finds a plan; see `least_plan`."""
    return least_plan(problem, stop)[0]


def least_plan(problem: Problem, stop: Stop = never) -> tuple[int, frozenset[Pair]]:
    """Return the lowest peak in bytes for which the greedy finds a plan, and this plan.

    The search is a bisection above the largest working set. Each plan is a start of the next search, so that a single
    search with this budget may find no plan.
    """
    pairs, firsts = frozenset[Pair](), sorted({problem.earliest, 0 if problem.everywhere else problem.earliest})
    searches = [LocalSearch(problem, first) for first in reversed(firsts)]
    high = evaluate(problem, sequence_of(problem, pairs)).peak_bytes
    low, plain = largest_working_set(problem).bytes - 1, high
    for _ in range(MAX_BUDGETS):
        if high - low <= max(1, int(BUDGET_TOLERANCE * plain)) or stop():
            break
        middle = (low + high) // 2
        within = next(filter(None, (_plans_within(search, middle, pairs) for search in searches)), None)
        if within:
            high, pairs = min(within, key=lambda plan: plan[0])
        else:
            low = middle
    return high, pairs


def _plans_within(search: LocalSearch, budget: int, pairs: frozenset[Pair]) -> list[tuple[int, frozenset[Pair]]]:
    """Return the plans of the greedy within the budget, from the given copies and from the plain step, with their peaks
    in bytes."""
    problem, starts = search.problem, (pairs, frozenset[Pair]())
    plans = [plan for start in starts if (plan := search.repaired(budget, start)) is not None]
    peaks = [evaluate(problem, sequence_of(problem, plan)).peak_bytes for plan in plans]
    return [(peak, plan) for peak, plan in zip(peaks, plans, strict=True) if peak <= budget]
