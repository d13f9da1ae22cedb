"""Choose the plan to mark: a plan within the budget that `recompute-clone` can derive from marks.

The derived plan may need more memory than the plan of the search (`rewriting/marked_plan.py`). In this case, other
candidates of the search are tried until the plan derived from one of them is within the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...support.diagnostics import Refusal
from ..outcome import RewriteResult
from .budget_problem import BudgetProblem
from .within import search_by_model


@dataclass(frozen=True)
class MarkableResult:
    """A result whose plan can be derived from marks.

    Attributes:
        result: The result.
        is_met: Whether the result is within the budget; for the budget `min`, whether it needs no more memory than the
            result of the search.
        is_as_good: Whether the result needs no more memory and no more FLOPs than the result of the search.
    """

    result: RewriteResult
    is_met: bool
    is_as_good: bool


def markable_result(problem: BudgetProblem, searched: RewriteResult) -> MarkableResult | None:
    """Choose a result whose plan can be derived from marks. If the plan derived from the search's result is within the
    budget, it is chosen. Otherwise, a plan is also derived from the best other candidate, and the derived plan that
    needs less memory is chosen.

    Args:
        problem: The module and its budget. Its function `run` marks the operations of the given plans, and applies the
            plans that are derived from these marks.
        searched: The result of the search, with its own plans.

    Returns:
        The result; None if no derived plan can be applied.
    """
    limits = problem.limits
    searched_ratio = limits.largest_ratio(searched.peaks)
    limit = searched_ratio if limits.limit_bytes is None else 1.0
    results = list[RewriteResult]()
    for attempt in (lambda: problem.evaluate(searched.outcome.plans), lambda: search_by_model(problem)):
        result = _result_or_none(attempt)
        results += [result] if result is not None else []
        if results and limits.largest_ratio(results[-1].peaks) <= limit:
            break
    if not results:
        return None
    best = min(results, key=lambda result: limits.largest_ratio(result.peaks))
    ratio = limits.largest_ratio(best.peaks)
    is_as_good = ratio <= searched_ratio and best.outcome.extra_flops <= searched.outcome.extra_flops
    return MarkableResult(best, is_met=ratio <= limit, is_as_good=is_as_good)


def _result_or_none(attempt: Callable[[], RewriteResult]) -> RewriteResult | None:
    try:
        return attempt()
    except Refusal:
        return None
