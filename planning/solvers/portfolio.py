"""The portfolio solver: start solutions, local search, exact programs, then tighter bounds, until the gap closes or the
effort is spent.

    solve(problem, budget)                         a Result, or `Infeasible` with the proven minimum

It starts from the plain step, from cuts, from Chen's segments and from other plans, each repaired and cleaned up. Of a
step of repeated blocks, the copies of one block are transferred to all blocks, or those of two or three consecutive
blocks periodically: a kept value in one block may replace a recomputed one in the next. The blocks at both ends differ
from those in the middle, so each result is repaired too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from . import integer_program, interval_program
from .cut_bounds import TOLERANCE, CutBounds, above_budget, cutting_off, near, overflow, second_cuts
from .effort import CLOSED_GAP, MAX_INTEGER_OPERATIONS, OPEN_GAP, SMALL_PROBLEM, Bounds, Effort, closed, searched_on
from .flows import FlowBounds
from .heuristics import chen
from .incumbent import Incumbent
from .kernels.compiled import PATH
from .local_search import LocalSearch, annealed, annealed_from, annealed_longer, from_the_start
from .problem import Ints, Pair
from .repeats import Repeats, repeats
from .result import Infeasible, Result, ended, impossible, nothing_found, refusal
from .window import windows

WIDTHS = (1, 2, 3)
"""Numbers of consecutive blocks whose copies are transferred."""
TRIES, MOST_TRIES = 60_000, 150
"""Maximum number of tries: `TRIES` divided by the number of operations, at most `MOST_TRIES`."""
ALIKE = " + alike in all blocks"


def reused(best: Incumbent, search: LocalSearch, bounds: Bounds) -> None:
    """Replace the copies of all blocks by those of one row of blocks, and repeat while the plan gets cheaper."""
    tries = min(MOST_TRIES, TRIES // max(1, len(best.problem)))
    if best.pairs is None or closed(best, bounds) or best.stopped() or not tries:
        return
    alike = repeats(best.problem)
    while alike is not None:
        best.progress(f"copies of one block in all {alike.count} that are alike, {best.elapsed:.1f} s")
        before, pairs, by = best.percent, best.pairs, best.solver.removesuffix(ALIKE)
        for first, width in _rows(alike.count, tries):
            if closed(best, bounds) or best.stopped():
                return
            best.offer(search.repaired(best.budget, spread(alike, pairs, first, width)), by + ALIKE)
        if best.percent >= before:
            return


def spread(alike: Repeats, pairs: Collection[Pair], first: int, width: int = 1) -> frozenset[Pair]:
    """Transfer the copies in the stages of `width` blocks from `first` on to all blocks; copies in stages outside of
    blocks stay."""
    steps = range(-width * (first // width + 1), alike.count - first + width, width)
    transferred = {(t, op) for t, op in pairs if not alike.inside(t)}
    for t, op in pairs:
        if alike.inside(t) and first <= alike.block[t] < first + width:
            for by in steps:
                stage = alike.shifted(t, by)
                copied = alike.shifted(op, by) if alike.inside(op) else op
                if stage is not None and copied is not None and copied < stage:
                    transferred.add((stage, copied))
    return frozenset(transferred)


def _rows(count: int, tries: int) -> Iterator[tuple[int, int]]:
    """Yield the first block and the width of each row to try; evenly spaced if there are more rows than tries."""
    step = max(1, -(-count * len(WIDTHS) // tries))
    for width in WIDTHS:
        for first in range(0, count - width + 1, step):
            yield first, width


MAX_TWO_CUT_OPERATIONS, MAX_CUT_PAIRS = 2000, 6
"""Maximum number of operations for two cuts at once, and of pairs of cuts where solutions exceed the budget."""
MAX_IDLE_PAIRS = 4
"""Number of consecutive pairs without improvement after which the others are skipped."""
MAX_CUTS, MAX_IDLE_ROUNDS = 12, 3
"""Maximum number of cuts, and number of consecutive rounds without improvement after which the search ends."""


def two_cuts(best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds) -> list[Ints]:
    """Solve with two cuts: the best one, and one where its solution exceeds the budget; on small problems also spread
    ones. Returns the overflow of the solution of each pair, by operation."""
    if (
        not isinstance(bounds, CutBounds)
        or bounds.best_cut < 0
        or len(best.problem) > MAX_TWO_CUT_OPERATIONS
        or not effort.pairs
    ):
        return []
    solution = next((pairs for by, pairs in bounds.starts if by == bounds.named_best), frozenset[Pair]())
    others = above_budget(best.problem, solution, best.budget)[:MAX_CUT_PAIRS]
    pairs = [(bounds.best_cut, other) for other in others if other != bounds.best_cut]
    if len(best.problem) <= SMALL_PROBLEM:
        pairs += [cut for cut in second_cuts(best.problem, bounds.best_cut) if cut not in pairs]
    idle, overflows = 0, list[Ints]()
    for cuts in pairs:
        if closed(best, bounds) or best.stopped() or idle == MAX_IDLE_PAIRS:
            break
        before = bounds.percent, best.percent
        overflows += _with_cuts(best, search, bounds, cuts, max(1, effort.nodes // 8))
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0
    return overflows


def growing_cuts(
    best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds, overflows: Collection[Ints]
) -> None:
    """Solve with the best single cut and as many more as cut off all previous solutions. `overflows`: of these."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > SMALL_PROBLEM or not effort.many:
        return
    cuts, idle, all_overflows = (bounds.best_cut,), 0, list(overflows)
    nodes = max(1, effort.nodes // 8 * max(1, SMALL_PROBLEM // len(best.problem)))
    while idle < MAX_IDLE_ROUNDS and not closed(best, bounds) and not best.stopped():
        before, fewer = (bounds.percent, best.percent), cuts
        cuts = cutting_off(cuts, all_overflows, near(best.problem))
        if not MAX_CUTS >= len(cuts) > len(fewer):
            return
        all_overflows += _with_cuts(best, search, bounds, cuts, nodes)
        if searched_on(best, effort, bounds, OPEN_GAP):
            annealed_from(best, search, effort, bounds, bounds.starts)
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0


def _with_cuts(
    best: Incumbent, search: LocalSearch, bounds: CutBounds, cuts: Collection[int], nodes: int
) -> list[Ints]:
    """Solve with these cuts, and offer the solutions. Returns their overflows: 0 at the cuts themselves, where rows of
    the program limit the bytes, although copies in the stage of a cut may exceed the budget."""
    best.progress(f"bound {bounds.percent:.4f} %; {len(cuts)} cuts, {best.elapsed:.1f} s")
    bounds.seconds = best.left
    bounds.starts.clear()
    bounds.cuts(tuple(cuts), best.pairs or (), nodes, TOLERANCE if len(cuts) <= 2 else CLOSED_GAP / 2)
    for by, pairs in bounds.starts:
        best.offer(search.repaired(best.budget, pairs), by)
    overflows = [overflow(best.problem, pairs, best.budget) for _, pairs in bounds.starts]
    for over in overflows:
        over[list(cuts)] = 0
    return overflows


MIN_FLOW_OPERATIONS = 2500
"""Number of operations from which cuts are solved as integer programs only if minimum cuts leave a gap."""
MET_GAP = 1e-4
WINDOWS_GAP = 1.0
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
    search, bounds = LocalSearch(problem), bounds_for(best, effort)
    if bounds.infeasible:
        return impossible(problem, f"no schedule keeps the budget: proved by the {bounds.infeasible}", True)
    _from_starts(best, search, bounds, starts)
    if MIN_FLOW_OPERATIONS < len(problem) <= MAX_INTEGER_OPERATIONS and not closed(best, bounds) and not best.stopped():
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
    """Return bounds and starts from single cuts. `closer`: use integer programs for problems of up to
    `MAX_INTEGER_OPERATIONS` operations."""
    if len(best.problem) <= (MAX_INTEGER_OPERATIONS if closer else MIN_FLOW_OPERATIONS) and integer_program.available():
        bounds = CutBounds(best.problem, best.budget, best.stopped, best.left, effort.nodes)
    else:
        bounds = FlowBounds(best.problem, best.budget, best.stopped)
    best.progress(f"bounds by single cuts: {len(best.problem)} operations")
    bounds.single_cuts()
    best.progress(f"bound {bounds.percent:.4f} % by {bounds.by}, {best.elapsed:.1f} s")
    return bounds


def _from_starts(best: Incumbent, search: LocalSearch, bounds: Bounds, starts: Iterable[Collection[Pair]]) -> None:
    problem, budget = best.problem, best.budget
    # On small problems these take milliseconds, so continue until the gap is nearly 0.
    met = MET_GAP if len(problem) <= MIN_FLOW_OPERATIONS else CLOSED_GAP
    for by, pairs in [*bounds.starts, *(("another plan", frozenset(pairs)) for pairs in starts)]:
        if not closed(best, bounds, met) and not best.stopped():
            best.offer(search.repaired(budget, pairs), by)
    if (
        not closed(best, bounds, met)
        and not best.stopped()
        and (len(problem) <= 4 * MAX_INTEGER_OPERATIONS or best.pairs is None)
    ):
        best.offer(search.repaired(budget), "greedy")
    if not closed(best, bounds) and not best.stopped() and len(problem) <= MAX_INTEGER_OPERATIONS:
        best.offer(chen(problem, budget), "chen")


def _windows(best: Incumbent, effort: Effort, bounds: Bounds) -> None:
    """Re-optimise the best plan window by window."""
    if not searched_on(best, effort, bounds, WINDOWS_GAP) or best.pairs is None:
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
