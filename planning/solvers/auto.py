"""Portfolio solver: starts from the plain step, from cuts, from Chen's segments and from other plans, each repaired and
cleaned up; then ruin and recreate, then tighter bounds, until the gap closes or the effort is spent.

    solve(problem, budget)                         a Result, or a Refusal with the proven minimum
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from . import integer_program, interval_program
from .anneals import annealed, annealed_longer, from_the_start
from .chen import chen
from .cut_bounds import CutBounds
from .effort import CLOSED, INTEGER, Bounds, Effort, closed, searched_on
from .flows import FlowBounds
from .incumbent import Incumbent
from .kernels.compiled import PATH
from .more_cuts import growing_cuts, two_cuts
from .problem import Pair
from .refusals import ended, impossible, nothing_found, refusal
from .result import Infeasible, Result
from .reuse import reused
from .search import Search
from .window import windows

FLOWS = 2500
"""From this number of operations on, cuts are solved as integer programs only if minimum cuts leave a gap."""
MET = 1e-4
FAR = 1.0
"""Gap in percentage points above which small problems are re-optimised window by window."""
WIDTH, WORK = 40, 1.0
"""Stages per window, and the limit of CP-SAT per window in deterministic seconds."""
PLAIN = "the plain step"


def auto(best: Incumbent, starts: Iterable[Collection[Pair]] = (), effort: Effort | None = None) -> Result | Infeasible:
    """Run the portfolio, and return the incumbent. `starts`: plans to start from, such as those for other budgets."""
    effort = effort or Effort()
    problem, budget = best.problem, best.budget
    refused = refusal(problem, budget)
    if refused is not None:
        return refused
    if best.offer((), PLAIN):
        return result_of(best, 0.0, "nothing runs again")
    search, bounds = Search(problem), bounds_for(best, effort)
    if bounds.infeasible:
        return impossible(problem, f"no schedule keeps the budget: proved by the {bounds.infeasible}", True)
    _from_starts(best, search, bounds, starts)
    if FLOWS < len(problem) <= INTEGER and not closed(best, bounds) and not best.stopped():
        bounds = bounds_for(best, effort, closer=True)
        _from_starts(best, search, bounds, ())
    reused(best, search, bounds)
    overflows = two_cuts(best, search, effort, bounds)
    annealed(best, search, effort, bounds)
    reused(best, search, bounds)
    search = from_the_start(best, search, effort, bounds)
    growing_cuts(best, search, effort, bounds, overflows)
    annealed_longer(best, search, effort, bounds)
    _windows(best, effort, bounds)
    if bounds.infeasible:
        return impossible(problem, f"no schedule keeps the budget: proved by the {bounds.infeasible}", True)
    if best.evaluation is None:
        return _before_the_gradient(best, effort)
    return result_of(best, bounds.percent, bounds.by)


def _before_the_gradient(best: Incumbent, effort: Effort) -> Result | Infeasible:
    """Search with copies in all stages, if allowed, after none was found with copies from `earliest` on."""
    if best.stopped():
        return ended(best.problem)
    if not best.problem.everywhere or best.problem.earliest == 0:
        return nothing_found(best.problem, "auto")
    best.progress("no plan so far: with copies in the forward pass")
    return auto(replace(best, problem=replace(best.problem, earliest=0)), (), effort)


def result_of(best: Incumbent, bound: float, by: str) -> Result:
    assert best.evaluation is not None and best.pairs is not None, "a result needs a plan"
    return Result(
        problem=best.problem,
        pairs=best.pairs,
        budget=best.budget,
        peak_bytes=best.evaluation.peak_bytes,
        extra_cost=best.evaluation.extra_cost,
        percent=best.percent,
        bound_percent=min(bound, best.percent),
        bound_by=by,
        solver=best.solver,
        seconds=best.elapsed,
        path=PATH,
        finished=not best.cut_short,
    )


def bounds_for(best: Incumbent, effort: Effort, closer: bool = False) -> Bounds:
    """Bounds and starts from single cuts. `closer`: use integer programs up to `INTEGER` operations."""
    if len(best.problem) <= (INTEGER if closer else FLOWS) and integer_program.available():
        bounds = CutBounds(best.problem, best.budget, best.stopped, best.left, effort.nodes)
    else:
        bounds = FlowBounds(best.problem, best.budget, best.stopped)
    best.progress(f"bounds by single cuts: {len(best.problem)} operations")
    bounds.single_cuts()
    best.progress(f"bound {bounds.percent:.4f} % by {bounds.by}, {best.elapsed:.1f} s")
    return bounds


def _from_starts(best: Incumbent, search: Search, bounds: Bounds, starts: Iterable[Collection[Pair]]) -> None:
    problem, budget = best.problem, best.budget
    # On small problems these take milliseconds, so continue until the gap is nearly 0.
    met = MET if len(problem) <= FLOWS else CLOSED
    for by, pairs in [*bounds.starts, *(("another plan", frozenset(pairs)) for pairs in starts)]:
        if not closed(best, bounds, met) and not best.stopped():
            best.offer(search.repaired(budget, pairs), by)
    if not closed(best, bounds, met) and not best.stopped() and (len(problem) <= 4 * INTEGER or best.pairs is None):
        best.offer(search.repaired(budget), "greedy")
    if not closed(best, bounds) and not best.stopped() and len(problem) <= INTEGER:
        best.offer(chen(problem, budget), "chen")


def _windows(best: Incumbent, effort: Effort, bounds: Bounds) -> None:
    """Re-optimise the best plan window by window."""
    if not searched_on(best, effort, bounds, FAR) or best.pairs is None:
        return
    if not interval_program.available():
        best.progress("OR-tools is not installed: windows of stages are not chosen anew")
        return
    pairs = best.pairs
    for first, last in windows(best.problem, WIDTH):
        if best.stopped():
            return
        best.progress(f"stages {first} to {last} anew, {best.elapsed:.1f} s")
        pairs = interval_program.chosen_anew(best.problem, best.budget, pairs, first, last, WORK)
        best.offer(pairs, f"{best.solver} + windows".replace(" + windows + windows", " + windows"))
