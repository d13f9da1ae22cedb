"""Bounds and starts from several cuts, if single cuts leave a gap."""

from __future__ import annotations

from collections.abc import Collection

from .anneals import annealed_from
from .cut_bounds import TOLERANCE, CutBounds, above_budget, cutting_off, near, overflow, second_cuts
from .effort import CLOSED, OPEN, SMALL, Bounds, Effort, closed, searched_on
from .incumbent import Incumbent
from .problem import Ints, Pair
from .search import Search

PAIRS, MOST_PAIRS = 2000, 6
"""Maximum number of operations for two cuts at once, and of pairs of cuts where solutions exceed the budget."""
MOST_IDLE = 4
"""Number of consecutive pairs without improvement after which the others are skipped."""
MOST_CUTS, MOST_IDLE_ROUNDS = 12, 3
"""Maximum number of cuts, and number of consecutive rounds without improvement after which the search ends."""


def two_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> list[Ints]:
    """Solve with two cuts: the best one, and one where its solution exceeds the budget; on small problems also spread
    ones. Returns the overflow of the solution of each pair, by operation."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > PAIRS or not effort.pairs:
        return []
    solution = next((pairs for by, pairs in bounds.starts if by == bounds.named_best), frozenset[Pair]())
    others = above_budget(best.problem, solution, best.budget)[:MOST_PAIRS]
    pairs = [(bounds.best_cut, other) for other in others if other != bounds.best_cut]
    if len(best.problem) <= SMALL:
        pairs += [cut for cut in second_cuts(best.problem, bounds.best_cut) if cut not in pairs]
    idle, overflows = 0, list[Ints]()
    for cuts in pairs:
        if closed(best, bounds) or best.stopped() or idle == MOST_IDLE:
            break
        before = bounds.percent, best.percent
        overflows += _with_cuts(best, search, bounds, cuts, max(1, effort.nodes // 8))
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0
    return overflows


def growing_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds, overflows: Collection[Ints]) -> None:
    """Solve with the best single cut and as many more as cut off all previous solutions. `overflows`: of these."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > SMALL or not effort.many:
        return
    cuts, idle, all_overflows = (bounds.best_cut,), 0, list(overflows)
    nodes = max(1, effort.nodes // 8 * max(1, SMALL // len(best.problem)))
    while idle < MOST_IDLE_ROUNDS and not closed(best, bounds) and not best.stopped():
        before, fewer = (bounds.percent, best.percent), cuts
        cuts = cutting_off(cuts, all_overflows, near(best.problem))
        if not MOST_CUTS >= len(cuts) > len(fewer):
            return
        all_overflows += _with_cuts(best, search, bounds, cuts, nodes)
        if searched_on(best, effort, bounds, OPEN):
            annealed_from(best, search, effort, bounds, bounds.starts)
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0


def _with_cuts(best: Incumbent, search: Search, bounds: CutBounds, cuts: Collection[int], nodes: int) -> list[Ints]:
    """Solve with these cuts, and offer the solutions. Returns their overflows: 0 at the cuts themselves, where rows of
    the program limit the bytes, although copies in the stage of a cut may exceed the budget."""
    best.progress(f"bound {bounds.percent:.4f} %; {len(cuts)} cuts, {best.elapsed:.1f} s")
    bounds.seconds = best.left
    bounds.starts.clear()
    bounds.cuts(tuple(cuts), best.pairs or (), nodes, TOLERANCE if len(cuts) <= 2 else CLOSED / 2)
    for by, pairs in bounds.starts:
        best.offer(search.repaired(best.budget, pairs), by)
    overflows = [overflow(best.problem, pairs, best.budget) for _, pairs in bounds.starts]
    for over in overflows:
        over[list(cuts)] = 0
    return overflows
