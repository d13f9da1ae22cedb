"""Solve a problem for many budgets, so that the results form a monotone curve, and search for the smallest budget with
a plan.

A plan is valid for every budget that is not below its peak. So each budget gets the cheapest plan within it and, among
equally cheap plans, the plan with the lowest peak. As budgets grow, costs never rise and peaks never fall. A lower
bound on the cost for one budget is valid for every smaller budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .local_search import LocalSearch
from .problem import Pair, Problem
from .result import Infeasible, Result, Stop, never_stop
from .sequence import evaluate, sequence_of
from .working_set import largest_working_set

Outcome = Result | Infeasible
BudgetSolver = Callable[[int, Iterable[frozenset[Pair]]], Outcome]
"""A function that takes a budget in bytes and the copies of plans to start from, and returns an outcome."""
MAX_BUDGETS = 16
"""Maximum number of budgets that are tried to find the smallest one. Since each halves the interval, `BUDGET_TOLERANCE`
is reached after at most ten."""
BUDGET_TOLERANCE = 1 / 1000
"""Tolerance of the search for the smallest budget, as a share of the peak of the plain step."""
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
        report: A callback for the outcome of each budget, in ascending order. Larger budgets may still lower the cost
            of this outcome, or raise its bound.

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


def smallest_budget(problem: Problem, stop: Stop = never_stop) -> int:
    """Return the smallest budget in bytes for which the greedy search finds a plan; see `lowest_peak_plan`."""
    return lowest_peak_plan(problem, stop)[0]


def lowest_peak_plan(problem: Problem, stop: Stop = never_stop) -> tuple[int, frozenset[Pair]]:
    """Return the plan with the lowest peak that the greedy search finds, as a pair of its peak in bytes and its copies.

    Budgets are bisected above the largest working set. Each plan is a start for the next budget, so a single search
    with the returned budget may find no plan.
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
    """Return the plans within the budget that the greedy search finds, starting from the given copies and from the
    plain step, as pairs of peak in bytes and copies."""
    problem, starts = search.problem, (pairs, frozenset[Pair]())
    plans = [plan for start in starts if (plan := search.repair(budget, start)) is not None]
    peaks = [evaluate(problem, sequence_of(problem, plan)).peak_bytes for plan in plans]
    return [(peak, plan) for peak, plan in zip(peaks, plans, strict=True) if peak <= budget]
