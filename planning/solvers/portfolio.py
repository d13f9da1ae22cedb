"""The portfolio solver. It combines starting solutions, local search, integer programs and tighter bounds, until the
gap is closed or the effort is spent.

    solve(problem, budget)                         a `Result`, or `Infeasible` with the proven minimum

The solver starts from the plain step, from the solutions at cuts, from segments of equal size (Chen) and from given
plans. The greedy search repairs each start, and unnecessary copies are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ...support.counted import counted
from ...support.units import format_percent
from . import integer_program, interval_program
from .block_transfer import transfer_blocks
from .cut_bounds import CutBounds
from .effort import CLOSED_GAP, LARGE_PROBLEM, Bounds, Effort, is_closed, should_search_on
from .flows import FlowBounds
from .heuristics import solve_by_equal_segments
from .incumbent import Incumbent
from .kernels.compiled import is_available
from .local_search import LocalSearch, anneal_best, anneal_longer, anneal_with_forward_copies
from .more_cuts import solve_with_more_cuts, solve_with_two_cuts
from .problem import Pair
from .provenance import Improvement, Provenance
from .result import Infeasible, Result, infeasible, refusal, refuse_after_end, refuse_without_plan
from .window import windows

MIN_FLOW_OPERATIONS = 2500
"""Number of operations above which integer programs are solved at cuts only if minimum cuts leave a gap. Minimum cuts
are much faster, but their bounds are weaker."""
MAX_GREEDY_OPERATIONS = 4 * LARGE_PROBLEM
"""Maximum number of operations for which the greedy heuristic runs although there is a plan already. On larger problems
it takes too long for a second plan."""
STARTS_GAP = 1e-4
"""On small problems, no further starts are tried once the gap is at most this value, in percentage points."""
WINDOWS_GAP = 1.0
"""Small problems are re-optimized window by window if the gap is above this value, in percentage points."""
WINDOW_STAGES, WINDOW_SECONDS = 40, 1.0
"""Number of stages per window, and the time limit of CP-SAT per window in deterministic seconds."""
PLAIN = Provenance("the plain step")
"""The provenance of the start without copies."""


def portfolio_result(
    best: Incumbent, starts: Iterable[Collection[Pair]] = (), effort: Effort | None = None
) -> Result | Infeasible:
    """Return the best plan of the portfolio, with a bound.

    Args:
        best: The incumbent, with the problem, the budget and the limits.
        starts: The copies of plans to start from, such as plans for other budgets.
        effort: The effort; `Effort()` if not given.

    Returns:
        The best plan with a proven bound, or the reason why there is no plan.
    """
    effort = effort or Effort()
    problem, budget = best.problem, best.budget
    refused = refusal(problem, budget)
    if refused is not None:
        return refused
    if best.offer((), PLAIN):
        return result_of(best, 0.0, "nothing is recomputed")
    search = LocalSearch(problem)
    bounds = bounds_for(best, effort)
    if not bounds.infeasible:
        bounds = _offer_all_starts(best, search, effort, bounds, starts)
        _improve(best, search, effort, bounds)
    if bounds.infeasible:
        return infeasible(problem, f"no schedule is within the budget: proved by the {bounds.infeasible}", True)
    if best.evaluation is None:
        return _solve_with_forward_copies(best, effort)
    return result_of(best, bounds.percent, bounds.bound_by)


def _offer_all_starts(
    best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds, starts: Iterable[Collection[Pair]]
) -> Bounds:
    """Offer all starting solutions to the incumbent. If a gap remains and the problem is of medium size, compute
    tighter bounds and also offer their starting solutions. Return the last bounds."""
    _offer_starts(best, search, bounds, starts)
    is_medium = MIN_FLOW_OPERATIONS < len(best.problem) <= LARGE_PROBLEM
    if is_medium and not is_closed(best, bounds) and not best.should_stop():
        bounds = bounds_for(best, effort, tighter=True)
        _offer_starts(best, search, bounds, ())
    return bounds


def _improve(best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds) -> None:
    """Improve the plan and the bound in turn. Each method ends at once if the gap is closed or the effort is spent."""
    transfer_blocks(best, search, bounds)
    overflows = solve_with_two_cuts(best, search, effort, bounds)
    anneal_best(best, search, effort, bounds)
    transfer_blocks(best, search, bounds)
    search = anneal_with_forward_copies(best, search, effort, bounds)
    solve_with_more_cuts(best, search, effort, bounds, overflows)
    anneal_longer(best, search, effort, bounds)
    _reoptimize_windows(best, effort, bounds)


def _solve_with_forward_copies(best: Incumbent, effort: Effort) -> Result | Infeasible:
    """Search with copies in all stages, if the problem allows them, after no plan was found with copies from
    `earliest_stage` on."""
    if best.should_stop():
        return refuse_after_end(best.problem)
    if not best.problem.allows_forward_copies or best.problem.earliest_stage == 0:
        return refuse_without_plan(best.problem, "the search")
    best.progress("no plan so far: with copies in the forward pass")
    return portfolio_result(replace(best, problem=replace(best.problem, earliest_stage=0)), (), effort)


def result_of(best: Incumbent, bound: float, by: str) -> Result:
    """Return the result of an incumbent that has a plan.

    Args:
        best: The incumbent.
        bound: The lower bound on the extra cost, in percent of the cost of the plain step.
        by: The method that proves the bound.
    """
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
        provenance=best.provenance,
        seconds=best.elapsed_seconds,
        path="compiled" if is_available() else "plain",
        finished=not best.cut_short,
    )


def bounds_for(best: Incumbent, effort: Effort, tighter: bool = False) -> Bounds:
    """Return lower bounds and starting solutions from single cuts.

    Args:
        best: The incumbent, with the problem, the budget and the limits.
        effort: The limits on the work of the integer programs.
        tighter: Whether to use integer programs for problems of up to `LARGE_PROBLEM` operations, rather than only for
            problems of up to `MIN_FLOW_OPERATIONS`.
    """
    if len(best.problem) <= (LARGE_PROBLEM if tighter else MIN_FLOW_OPERATIONS) and integer_program.is_installed():
        bounds = CutBounds(best.problem, best.budget, best.should_stop, best.remaining_seconds, effort.nodes)
    else:
        bounds = FlowBounds(best.problem, best.budget, best.should_stop)
    best.progress(f"bounds by single cuts: {counted(len(best.problem), 'operation')}")
    bounds.solve_single_cuts()
    best.progress(f"bound {format_percent(bounds.percent)} % by {bounds.bound_by}, {best.elapsed_seconds:.1f} s")
    return bounds


def _offer_starts(best: Incumbent, search: LocalSearch, bounds: Bounds, starts: Iterable[Collection[Pair]]) -> None:
    """Repair and offer the starting solutions of the bounds and the plans `starts`, then the solutions of the greedy
    heuristic and of equal segments."""
    problem, budget = best.problem, best.budget
    # On small problems each start takes milliseconds, so starts are tried until the gap is nearly 0.
    gap = STARTS_GAP if len(problem) <= MIN_FLOW_OPERATIONS else CLOSED_GAP

    def is_open(gap: float) -> bool:
        return not is_closed(best, bounds, gap) and not best.should_stop()

    for by, pairs in [*bounds.starts, *(("another plan", frozenset(pairs)) for pairs in starts)]:
        if is_open(gap):
            best.offer(search.repair(budget, pairs), Provenance(by))
    if is_open(gap) and (len(problem) <= MAX_GREEDY_OPERATIONS or best.pairs is None):
        best.offer(search.repair(budget), Provenance("greedy"))
    if is_open(CLOSED_GAP) and len(problem) <= LARGE_PROBLEM:
        best.offer(solve_by_equal_segments(problem, budget), Provenance("chen"))


def _reoptimize_windows(best: Incumbent, effort: Effort, bounds: Bounds) -> None:
    """Re-optimize the copies of the best plan window by window."""
    if not should_search_on(best, effort, bounds, WINDOWS_GAP) or best.pairs is None:
        return
    if not interval_program.is_installed():
        best.progress("OR-tools is not installed: windows of stages are not re-optimized")
        return
    pairs = best.pairs
    for first, last in windows(best.problem, WINDOW_STAGES):
        if best.should_stop():
            return
        best.progress(f"stages {first} to {last} re-optimized, {best.elapsed_seconds:.1f} s")
        pairs = interval_program.reoptimize(
            best.problem, best.budget, pairs=pairs, first=first, last=last, work=WINDOW_SECONDS
        )
        best.offer(pairs, best.provenance.with_improvement(Improvement.WINDOWS))
