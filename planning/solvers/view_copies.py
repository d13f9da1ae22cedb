"""Model copies of views: for graphs whose views are smaller than their storage, decide which views to copy out.

Copies of views: a slice of a gradient keeps the whole buffer live; a copy of the slice needs its own bytes only.

    with_copies(problem, views)      the step with an operation `copy:<node>` for each view, after the viewed storage
    views_apart(problem)             a relaxation of the step with any copies of views, for bounds

A copy costs as much as data movement in the graphs: 16 per byte read or written. It is an ordinary operation: it can
run again, and its result can be dropped.

The bound. In `views_apart` a storage is split into its views and the remainder, all made by its maker; a reader of the
whole storage reads all parts. For any schedule with any copies of views: if the storage is live, its parts are, which
together are no larger; if a copy is live, its part is, which is no larger. The first executions of copies are free in
the relaxation. So a lower bound of the relaxation is one for every schedule with copies of views.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from .effort import Effort
from .incumbent import Incumbent
from .local_search import LocalSearch
from .portfolio import auto, bounds_for
from .problem import OperationRow, Pair, Problem, SmallView, problem_of
from .result import Infeasible, Result, nothing_found, refusal

COST_PER_BYTE = 16


def with_copies(problem: Problem, views: Sequence[SmallView]) -> Problem:
    """Add copies of views as operations. Raises `ValueError` for a view of another problem."""
    behind = dict[int, list[SmallView]]()
    for view in views:
        if view not in problem.views:
            raise ValueError(f"view {view.label} is not one of the problem's views")
        behind.setdefault(view.after, []).append(view)
    through = {(op, view.value): view for view in views for op in view.readers}
    rows, number, copied = list[OperationRow](), dict[int, int](), dict[str, int]()
    names, made = list[str](), 0
    for op in range(len(problem)):
        reads = [copied[through[op, v].label] if (op, v) in through else number[v] for v in problem.reads_of(op)]
        rows.append(replace(_row(problem, op), reads=reads))
        for v in problem.makes_of(op):
            number[v], made = made, made + 1
            names.append(problem.value_names[v])
        for view in behind.get(op, ()):
            label = f"copy:{view.label}"
            cost, late = 2 * COST_PER_BYTE * view.bytes, bool(problem.backward[op])
            rows.append(OperationRow(label, cost, [number[view.value]], [view.bytes], 0, True, late, label))
            copied[view.label], made = made, made + 1
            names.append(label)
    outputs = [number[v] for v in range(len(problem.sizes)) if problem.output[v]]
    earliest = problem.earliest + sum(view.after < problem.earliest for view in views)
    return problem_of(rows, outputs, names, earliest, everywhere=problem.everywhere)


def views_apart(problem: Problem) -> Problem:
    """Return the relaxation in the docstring of the module. Its operations have the numbers of the problem."""
    parts = dict[int, list[SmallView]]()
    for view in problem.views:
        parts.setdefault(view.value, []).append(view)
    through = {(op, view.value): view for view in problem.views for op in view.readers}
    rows, pieces = list[OperationRow](), dict[int, dict[str, int]]()
    names, outputs, made = list[str](), list[int](), 0
    for op in range(len(problem)):
        reads = [
            piece
            for v in problem.reads_of(op)
            for piece in ([pieces[v][through[op, v].label]] if (op, v) in through else pieces[v].values())
        ]
        makes = list[int]()
        for v in problem.makes_of(op):
            sizes = _pieces(int(problem.sizes[v]), parts.get(v, ()))
            pieces[v] = {label: made + index for index, label in enumerate(sizes)}
            makes += sizes.values()
            names += [f"{problem.value_names[v]} {label}".rstrip() for label in sizes]
            made += len(sizes)
            if problem.output[v]:
                outputs += pieces[v].values()
        rows.append(replace(_row(problem, op), reads=reads, makes=makes))
    return problem_of(rows, outputs, names, problem.earliest, everywhere=problem.everywhere)


def _pieces(size: int, views: Sequence[SmallView]) -> dict[str, int]:
    """Return the bytes of the parts of a storage, by the label of the view and "" for the remainder: in total at most
    `size`."""
    total = sum(view.bytes for view in views)
    parts = {view.label: view.bytes * size // max(size, total) for view in views} if total else {}
    return {"": max(0, size - total), **parts}


def _row(problem: Problem, op: int) -> OperationRow:
    return OperationRow(
        name=problem.names[op],
        cost=int(problem.costs[op]),
        makes=[int(problem.sizes[v]) for v in problem.makes_of(op)],
        inner=int(problem.inner[op]),
        again=bool(problem.again[op]),
        backward=bool(problem.backward[op]),
        label=problem.labels[op],
    )


MAX_SINGLE_VIEWS = 48
"""Maximum number of views that are tried one by one: those that free the most bytes."""
MANY_OPERATIONS = 5000
"""Number of operations from which either all views are copied, or none."""


def auto_with_views(
    best: Incumbent, starts: Iterable[Collection[Pair]] = (), effort: Effort | None = None
) -> Result | Infeasible:
    """Solve as `auto` does, with copies of views. The bound holds for all schedules, with any copies of views."""
    problem, budget, effort = best.problem, best.budget, effort or Effort()
    relaxed = Incumbent(views_apart(problem), budget, best.seconds, best.progress, best.interrupt)
    if (refused := refusal(relaxed.problem, budget)) is not None:
        return refused
    # Half of the time limit is reserved for the search with copies of views.
    first = replace(best, seconds=None if best.seconds is None else best.seconds / 2)
    plain = auto(first, starts, effort)
    if not problem.views or (isinstance(plain, Result) and plain.extra_cost == 0):
        return plain
    bounds = bounds_for(relaxed, effort)
    if bounds.infeasible:
        return Infeasible(f"no schedule keeps the budget: proved by the {bounds.infeasible}", True, 0)
    chosen = _select_views(best, plain.extra_cost if isinstance(plain, Result) else None)
    outcome = _solve_with(best, chosen, effort) if chosen else plain
    if not isinstance(outcome, Result) or (isinstance(plain, Result) and plain.extra_cost <= outcome.extra_cost):
        outcome = plain
    if not isinstance(outcome, Result):
        # A proof without copies of views does not hold with them.
        return nothing_found(relaxed.problem, "auto, with copies of views,")
    by = f"{bounds.by}, any copies of views"
    return replace(outcome, bound_percent=min(outcome.percent, bounds.percent), bound_by=by, seconds=best.elapsed)


def _solve_with(best: Incumbent, views: Sequence[SmallView], effort: Effort) -> Result | Infeasible:
    """Solve with copies of these views. Extra costs are relative to the plain step without copies of views."""
    problem = with_copies(best.problem, views)
    inner = Incumbent(problem, best.budget, best.left, best.progress, best.interrupt)
    outcome = auto(inner, (), effort)
    if not isinstance(outcome, Result):
        return outcome
    extra = outcome.extra_cost + problem.total_cost - best.problem.total_cost
    by = f"{outcome.solver}, {len(views)} copies of views"
    return replace(outcome, extra_cost=extra, percent=best.problem.percent(extra), solver=by)


def _select_views(best: Incumbent, cost: int | None) -> list[SmallView]:
    """Return the profitable views by the greedy. `cost`: the extra cost without copies of views; None without a
    plan."""
    problem = best.problem
    views = sorted(problem.views, key=lambda view: view.bytes - int(problem.sizes[view.value]))[:MAX_SINGLE_VIEWS]
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
    for view in views if len(problem) <= MANY_OPERATIONS else ():
        if best.stopped():
            break
        toggled = [other for other in chosen if other != view] if view in chosen else [*chosen, view]
        toggled_cost = _cost(problem, best.budget, toggled)
        if toggled_cost is not None and (cost is None or toggled_cost < cost):
            chosen, cost = toggled, toggled_cost
    best.progress(f"copies of views: {len(chosen)} of {len(problem.views)} pay")
    return chosen


def _first_feasible(best: Incumbent, views: Sequence[SmallView]) -> tuple[list[SmallView], int | None]:
    """Return the first feasible selection among single views and all views but one: copying all may exceed the
    budget."""
    selections = [[view] for view in views] + [[view for view in views if view is not other] for other in views]
    for selection in selections if len(best.problem) <= MANY_OPERATIONS else ():
        if best.stopped():
            break
        if (cost := _cost(best.problem, best.budget, selection)) is not None:
            return selection, cost
    return [], None


def _cost(problem: Problem, budget: int, views: Sequence[SmallView]) -> int | None:
    """Return the extra cost of the greedy's plan relative to the plain step without copies of views; None without a
    plan."""
    changed = with_copies(problem, views)
    pairs = LocalSearch(changed).repaired(budget)
    return None if pairs is None else changed.cost_of(pairs) + changed.total_cost - problem.total_cost
