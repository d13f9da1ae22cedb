"""Solving with copies of views as a move: without them, then with those that pay, each tried by the greedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from .auto import auto, bounds_for
from .effort import Effort
from .incumbent import Incumbent
from .problem import Pair, Problem, View
from .refusals import nothing_found, refusal
from .result import Refusal, Result
from .search import Search
from .view_copies import views_apart, with_copies

MOST = 48
"""Views that are tried one by one: those that free most."""
LARGE = 5000
"""From so many operations on all views are copied, or none."""


def auto_with_views(
    best: Incumbent, starts: Iterable[Collection[Pair]] = (), effort: Effort | None = None
) -> Result | Refusal:
    """As `auto`. The bound is one for all schedules, with any copies of views."""
    problem, budget, effort = best.problem, best.budget, effort or Effort()
    relaxed = Incumbent(views_apart(problem), budget, best.seconds, best.progress, best.interrupt)
    if (refused := refusal(relaxed.problem, budget)) is not None:
        return refused
    # Half of a clock's time is for what comes after.
    first = replace(best, seconds=None if best.seconds is None else best.seconds / 2)
    plain = auto(first, starts, effort)
    if not problem.views or (isinstance(plain, Result) and plain.extra_cost == 0):
        return plain
    bounds = bounds_for(relaxed, effort)
    if bounds.infeasible:
        return Refusal(f"no schedule keeps the budget: proved by the {bounds.infeasible}", True, 0)
    chosen = _chosen(best, plain.extra_cost if isinstance(plain, Result) else None)
    found = _with(best, chosen, effort) if chosen else plain
    if not isinstance(found, Result) or (isinstance(plain, Result) and plain.extra_cost <= found.extra_cost):
        found = plain
    if not isinstance(found, Result):
        # What is proved without copies of views is no proof with them.
        return nothing_found(relaxed.problem, "auto, with copies of views,")
    by = f"{bounds.by}, any copies of views"
    return replace(found, bound_percent=min(found.percent, bounds.percent), bound_by=by, seconds=best.elapsed)


def _with(best: Incumbent, views: Sequence[View], effort: Effort) -> Result | Refusal:
    """Its costs are over the plain step without copies of views."""
    problem = with_copies(best.problem, views)
    inner = Incumbent(problem, best.budget, best.left, best.progress, best.interrupt)
    found = auto(inner, (), effort)
    if not isinstance(found, Result):
        return found
    extra = found.extra_cost + problem.total_cost - best.problem.total_cost
    by = f"{found.solver}, {len(views)} copies of views"
    return replace(found, extra_cost=extra, percent=best.problem.percent(extra), solver=by)


def _chosen(best: Incumbent, cost: int | None) -> list[View]:
    """The views that pay, as far as the greedy sees it; `cost`: without any."""
    problem = best.problem
    views = sorted(problem.views, key=lambda view: view.bytes - int(problem.sizes[view.value]))[:MOST]
    chosen = views
    everything = _cost(problem, best.budget, views)
    if everything is None and cost is None:
        chosen, everything = _a_few(best, views)
    if everything is None and cost is None:
        return []
    if cost is None or (everything is not None and everything < cost):
        cost = everything
    else:
        chosen = list[View]()
    for view in views if len(problem) <= LARGE else ():
        if best.stopped():
            break
        other = [one for one in chosen if one != view] if view in chosen else [*chosen, view]
        found = _cost(problem, best.budget, other)
        if found is not None and (cost is None or found < cost):
            chosen, cost = other, found
    best.progress(f"copies of views: {len(chosen)} of {len(problem.views)} pay")
    return chosen


def _a_few(best: Incumbent, views: Sequence[View]) -> tuple[list[View], int | None]:
    """A copy needs room for itself, so that all of them can be too many: one of them alone, or all without one."""
    tried = [[view] for view in views] + [[view for view in views if view is not other] for other in views]
    for few in tried if len(best.problem) <= LARGE else ():
        if best.stopped():
            break
        if (cost := _cost(best.problem, best.budget, few)) is not None:
            return few, cost
    return [], None


def _cost(problem: Problem, budget: int, views: Sequence[View]) -> int | None:
    """Beyond the plain step without copies of views."""
    changed = with_copies(problem, views)
    pairs = Search(changed).repaired(budget)
    return None if pairs is None else changed.cost_of(pairs) + changed.total_cost - problem.total_cost
