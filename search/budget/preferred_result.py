"""The order of preference among results that are within a budget in program order."""

from __future__ import annotations

from collections.abc import Sequence

from ..outcome import RewriteResult
from .budget_problem import BudgetProblem

MAX_EAGER_COST = 0.10
"""Maximum extra cost, as a share of the cost of the plain step, of a plan whose peak is also low on an eager executor,
compared with the cheapest plan within the budget in program order."""


def preferred_result(problem: BudgetProblem, results: Sequence[RewriteResult]) -> RewriteResult:
    """Return the preferred result of several results within the budget.

    For the budget `min`, prefer the result with the lowest peak; in a tie, the cheapest one. Otherwise, prefer the
    cheapest result that also has a low peak on an eager executor and costs little more than the cheapest result. If
    there is no such result, return the cheapest one.
    """
    if problem.limits.limit_bytes is None:
        return min(results, key=lambda result: (problem.limits.largest_ratio(result.peaks), result.outcome.extra_cost))
    low = [result for result in results if problem.eager_excess(result) <= 0 and is_affordable(result, results)]
    return min(low or results, key=lambda result: result.outcome.extra_cost)


def is_affordable(result: RewriteResult, results: Sequence[RewriteResult]) -> bool:
    """Return whether a result costs little more than the cheapest one, so that it may be preferred for its eager
    peak."""
    cheapest = min(results, key=lambda other: other.outcome.extra_cost).outcome
    return result.outcome.extra_cost <= cheapest.extra_cost + MAX_EAGER_COST * result.outcome.plain_cost
