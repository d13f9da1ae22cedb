"""Compute bounds and starting solutions from integer programs with two or more cuts. Cuts are placed at operations
where previous solutions exceed the budget."""

from __future__ import annotations

from collections.abc import Collection

from ...support.counted import counted
from ...support.units import format_percent
from .cut_bounds import (
    SOLVED_GAP,
    CutBounds,
    add_separating_cuts,
    cut_pairs,
    min_distance,
    overflow,
    places_above_budget,
)
from .effort import CLOSED_GAP, OPEN_GAP, SMALL_PROBLEM, Bounds, Effort, is_closed, should_search_on
from .incumbent import Incumbent
from .local_search import LocalSearch, anneal_from
from .problem import Ints, Pair
from .provenance import Provenance

MAX_TWO_CUT_OPERATIONS, MAX_CUT_PAIRS = 2000, 6
"""Maximum number of operations for programs with two cuts; and maximum number of pairs that combine the best single cut
with a cut where its solution exceeds the budget."""
MAX_IDLE_PAIRS = 4
"""After this number of consecutive pairs of cuts without improvement, the remaining pairs are skipped, because each
pair requires an integer program."""
MAX_CUTS, MAX_IDLE_ROUNDS = 12, 3
"""Maximum number of cuts; and number of consecutive rounds without improvement after which the search ends."""


def solve_with_two_cuts(best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds) -> list[Ints]:
    """Solve programs with pairs of cuts: the best single cut, and a cut where its solution exceeds the budget. On small
    problems, the best single cut is also paired with cuts that are spread over the rest of the step.

    Args:
        best: The incumbent, to which solutions are offered.
        search: The search that repairs solutions.
        effort: The limits.
        bounds: The bounds from single cuts. They are raised in place.

    Returns:
        For each solution, the bytes above the budget at each operation.
    """
    if (
        not isinstance(bounds, CutBounds)
        or bounds.best_cut < 0
        or len(best.problem) > MAX_TWO_CUT_OPERATIONS
        or not effort.tries_two_cuts
    ):
        return []
    solution = next((pairs for by, pairs in bounds.starts if by == bounds.best_start_name), frozenset[Pair]())
    others = places_above_budget(best.problem, solution, best.budget)[:MAX_CUT_PAIRS]
    pairs = [(bounds.best_cut, other) for other in others if other != bounds.best_cut]
    if len(best.problem) <= SMALL_PROBLEM:
        pairs += [cut for cut in cut_pairs(best.problem, bounds.best_cut) if cut not in pairs]
    idle, overflows = 0, list[Ints]()
    for cuts in pairs:
        if is_closed(best, bounds) or best.should_stop() or idle == MAX_IDLE_PAIRS:
            break
        percents = bounds.percent, best.percent
        overflows += _solve_with_cuts(best, search, bounds, cuts, max(1, effort.nodes // 8))
        idle = idle + 1 if (bounds.percent, best.percent) == percents else 0
    return overflows


def solve_with_more_cuts(
    best: Incumbent, search: LocalSearch, effort: Effort, bounds: Bounds, overflows: Collection[Ints]
) -> None:
    """Solve programs with the best single cut and further cuts, which are added until each previous solution exceeds
    the budget at one of the cuts.

    Args:
        best: The incumbent, to which solutions are offered.
        search: The search that repairs solutions.
        effort: The limits.
        bounds: The bounds from single cuts. They are raised in place.
        overflows: For each previous solution, the bytes above the budget at each operation.
    """
    if (
        not isinstance(bounds, CutBounds)
        or bounds.best_cut < 0
        or len(best.problem) > SMALL_PROBLEM
        or not effort.tries_many_cuts
    ):
        return
    cuts = (bounds.best_cut,)
    idle = 0
    all_overflows = list(overflows)
    nodes = max(1, effort.nodes // 8 * max(1, SMALL_PROBLEM // len(best.problem)))
    while idle < MAX_IDLE_ROUNDS and not is_closed(best, bounds) and not best.should_stop():
        percents = (bounds.percent, best.percent)
        cut_count = len(cuts)
        cuts = add_separating_cuts(cuts, all_overflows, min_distance(best.problem))
        if not cut_count < len(cuts) <= MAX_CUTS:
            return
        all_overflows += _solve_with_cuts(best, search, bounds, cuts, nodes)
        if should_search_on(best, effort, bounds, OPEN_GAP):
            anneal_from(best, search, effort, bounds, [(Provenance(by), pairs) for by, pairs in bounds.starts])
        idle = idle + 1 if (bounds.percent, best.percent) == percents else 0


def _solve_with_cuts(
    best: Incumbent, search: LocalSearch, bounds: CutBounds, cuts: Collection[int], nodes: int
) -> list[Ints]:
    """Solve the program with these cuts, and offer the solutions. Returns, for each solution, the overflow at each
    operation: the bytes above the budget. `nodes`: the limit of branching nodes.

    The overflow at each cut is set to 0. The rows of the program limit the bytes at the cut, although the copies in its
    stage may still exceed the budget.
    """
    best.progress(
        f"bound {format_percent(bounds.percent)} %; {counted(len(cuts), 'cut')}, {best.elapsed_seconds:.1f} s"
    )
    bounds.seconds = best.remaining_seconds
    bounds.starts.clear()
    bounds.solve_cuts(tuple(cuts), best.pairs or (), nodes, SOLVED_GAP if len(cuts) <= 2 else CLOSED_GAP / 2)
    for by, pairs in bounds.starts:
        best.offer(search.repair(best.budget, pairs), Provenance(by))
    overflows = [overflow(best.problem, pairs, best.budget) for _, pairs in bounds.starts]
    for over in overflows:
        over[list(cuts)] = 0
    return overflows
