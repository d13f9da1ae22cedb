"""The portfolio solver with copies of views. It chooses the views to copy, and solves the problem with these copies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from .effort import LARGE_PROBLEM, Effort
from .incumbent import Incumbent
from .local_search import LocalSearch
from .portfolio import bounds_for, portfolio_result
from .problem import Pair, Problem, SmallView
from .result import Infeasible, Result, refusal, refuse_without_plan
from .view_copies import split_views, with_copies

MAX_SINGLE_VIEWS = 48
"""Maximum number of views that are tried one by one, because each takes a search. The views that free the most bytes
are tried."""


def portfolio_result_with_views(
    best: Incumbent, starts: Iterable[Collection[Pair]] = (), effort: Effort | None = None
) -> Result | Infeasible:
    """Return the best plan of the portfolio with copies of views. Its bound is valid for any copies of views.

    Args:
        best: The incumbent of the problem without copies of views, with the budget and the limits.
        starts: As in `portfolio_result`.
        effort: As in `portfolio_result`.

    Returns:
        The result, whose extra cost is relative to the plain step, or the reason why there is no plan.
    """
    problem, budget, effort = best.problem, best.budget, effort or Effort()
    relaxed = Incumbent(split_views(problem), budget, best.seconds, best.progress, best.interrupt)
    if (refused := refusal(relaxed.problem, budget)) is not None:
        return refused
    # Half of the time limit is reserved for the search with copies of views.
    without_views = replace(best, seconds=None if best.seconds is None else best.seconds / 2)
    plain = portfolio_result(without_views, starts, effort)
    if not problem.views or (isinstance(plain, Result) and plain.extra_cost == 0):
        return plain
    bounds = bounds_for(relaxed, effort)
    if bounds.infeasible:
        return Infeasible(f"no schedule is within the budget: proved by the {bounds.infeasible}", True, 0)
    chosen = _select_views(best, plain.extra_cost if isinstance(plain, Result) else None)
    outcome = _solve_with(best, chosen, effort) if chosen else plain
    if not isinstance(outcome, Result) or (isinstance(plain, Result) and plain.extra_cost <= outcome.extra_cost):
        outcome = plain
    if not isinstance(outcome, Result):
        # A proof for the problem without copies of views is not valid for schedules with such copies.
        return refuse_without_plan(relaxed.problem, "auto, with copies of views,")
    by = f"{bounds.bound_by}, any copies of views"
    return replace(
        outcome, bound_percent=min(outcome.percent, bounds.percent), bound_by=by, seconds=best.elapsed_seconds
    )


def _solve_with(best: Incumbent, views: Sequence[SmallView], effort: Effort) -> Result | Infeasible:
    """Solve the problem with copies of these views. The extra cost is relative to the plain step without copies of
    views."""
    problem = with_copies(best.problem, views)
    inner = Incumbent(problem, best.budget, best.remaining_seconds, best.progress, best.interrupt)
    outcome = portfolio_result(inner, (), effort)
    if not isinstance(outcome, Result):
        return outcome
    extra = outcome.extra_cost + problem.total_cost - best.problem.total_cost
    provenance = replace(outcome.provenance, copied_views=len(views))
    return replace(outcome, extra_cost=extra, percent=best.problem.percent(extra), provenance=provenance)


def _select_views(best: Incumbent, cost: int | None) -> list[SmallView]:
    """Select views one by one. A view is selected if its copies lower the extra cost of the greedy search's plan.

    `cost`: the extra cost of the plan without copies of views; None if there is no such plan.
    """
    problem = best.problem
    by_freed_bytes = sorted(problem.views, key=lambda view: view.bytes - int(problem.storage_bytes[view.storage]))
    views = by_freed_bytes[:MAX_SINGLE_VIEWS]
    chosen = views
    start_cost = _cost(problem, best.budget, views)
    if start_cost is None and cost is None:
        chosen, start_cost = _first_feasible(best, views)
    if start_cost is None and cost is None:
        return []
    if cost is None or (start_cost is not None and start_cost < cost):
        cost = start_cost
    else:
        chosen = list[SmallView]()
    for view in views if len(problem) <= LARGE_PROBLEM else ():
        if best.should_stop():
            break
        toggled = [other for other in chosen if other != view] if view in chosen else [*chosen, view]
        toggled_cost = _cost(problem, best.budget, toggled)
        if toggled_cost is not None and (cost is None or toggled_cost < cost):
            chosen, cost = toggled, toggled_cost
    best.progress(f"copies of views: {len(chosen)} of {len(problem.views)} lower the extra cost")
    return chosen


def _first_feasible(best: Incumbent, views: Sequence[SmallView]) -> tuple[list[SmallView], int | None]:
    """Return the first selection of views for which there is a plan, and the cost of this plan. First each view is
    tried alone, then all views except one of them, because copies of all views together may exceed the budget."""
    selections = [[view] for view in views] + [[view for view in views if view is not other] for other in views]
    for selection in selections if len(best.problem) <= LARGE_PROBLEM else ():
        if best.should_stop():
            break
        if (cost := _cost(best.problem, best.budget, selection)) is not None:
            return selection, cost
    return [], None


def _cost(problem: Problem, budget: int, views: Sequence[SmallView]) -> int | None:
    """Return the extra cost, relative to the plain step, of the plan that the greedy search finds with copies of these
    views; None if it finds no plan."""
    changed = with_copies(problem, views)
    pairs = LocalSearch(changed).repair(budget)
    return None if pairs is None else changed.cost_of(pairs) + changed.total_cost - problem.total_cost
