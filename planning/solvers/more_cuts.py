"""More cuts than one, where single ones leave a gap: what they prove, and what their solutions say as starts."""

from __future__ import annotations

from collections.abc import Collection

from .anneals import annealed_from
from .cut_bounds import TOLERANCE, CutBounds, above_budget, cutting_off, near, overflow, second_cuts
from .effort import CLOSED, OPEN, SMALL, Bounds, Effort, closed, searched_on
from .incumbent import Incumbent
from .problem import Ints, Pair
from .search import Search

PAIRS, MOST_PAIRS = 2000, 6
"""Up to so many operations with two cuts at once, and so many of these."""
MOST_IDLE = 4
"""So many pairs on end that neither prove nor find more, and the others are not tried."""
MOST_CUTS, MOST_IDLE_ROUNDS = 12, 3
"""Up to so many cuts, until so many rounds on end neither prove nor find more."""


def two_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> list[Ints]:
    """Two cuts: the best one, and where what it says is above the budget; on small problems also spread ones. Returns
    by how much what each pair says is above the budget, operation by operation."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > PAIRS or not effort.pairs:
        return []
    said = next((pairs for by, pairs in bounds.starts if by == bounds.named_best), frozenset[Pair]())
    others = above_budget(best.problem, said, best.budget)[:MOST_PAIRS]
    pairs = [(bounds.best_cut, other) for other in others if other != bounds.best_cut]
    if len(best.problem) <= SMALL:
        pairs += [cut for cut in second_cuts(best.problem, bounds.best_cut) if cut not in pairs]
    idle, found = 0, list[Ints]()
    for cuts in pairs:
        if closed(best, bounds) or best.stopped() or idle == MOST_IDLE:
            break
        before = bounds.percent, best.percent
        found += _with_cuts(best, search, bounds, cuts, max(1, effort.nodes // 8))
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0
    return found


def growing_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds, said: Collection[Ints]) -> None:
    """The best single cut, and as many more at a time as cut off all that was `said` so far."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > SMALL or not effort.many:
        return
    cuts, idle, overflows = (bounds.best_cut,), 0, list(said)
    nodes = max(1, effort.nodes // 8 * max(1, SMALL // len(best.problem)))
    while idle < MOST_IDLE_ROUNDS and not closed(best, bounds) and not best.stopped():
        before, fewer = (bounds.percent, best.percent), cuts
        cuts = cutting_off(cuts, overflows, near(best.problem))
        if not MOST_CUTS >= len(cuts) > len(fewer):
            return
        overflows += _with_cuts(best, search, bounds, cuts, nodes)
        if searched_on(best, effort, bounds, OPEN):
            annealed_from(best, search, effort, bounds, bounds.starts)
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0


def _with_cuts(best: Incumbent, search: Search, bounds: CutBounds, cuts: Collection[int], nodes: int) -> list[Ints]:
    """What is proved and said with these cuts. Returns by how much that is above the budget: nothing at the cuts
    themselves, whose rows it keeps, although copies in front of them may not."""
    best.progress(f"bound {bounds.percent:.4f} %; {len(cuts)} cuts, {best.elapsed:.1f} s")
    bounds.seconds = best.left
    bounds.starts.clear()
    bounds.cuts(tuple(cuts), best.pairs or (), nodes, TOLERANCE if len(cuts) <= 2 else CLOSED / 2)
    for by, pairs in bounds.starts:
        best.offer(search.repaired(best.budget, pairs), by)
    above = [overflow(best.problem, pairs, best.budget) for _, pairs in bounds.starts]
    for one in above:
        one[list(cuts)] = 0
    return above
