"""More cuts than one, where single ones leave a gap: what they prove, and what their solutions say as starts."""

from __future__ import annotations

from collections.abc import Collection

from .anneals import annealed_from
from .cut_bounds import CutBounds, above_budget, near, second_cuts
from .effort import OPEN, SMALL, Bounds, Effort, closed, searched_on
from .incumbent import Incumbent
from .problem import Pair
from .search import Search

PAIRS, MOST_PAIRS = 2000, 6
"""Up to so many operations with two cuts at once, and so many of these."""
MOST_IDLE = 4
"""So many pairs on end that neither prove nor find more, and the others are not tried."""
MORE, MOST_CUTS, MOST_IDLE_ROUNDS = 2, 12, 3
"""So many more cuts at a time, up to so many, until so many rounds on end neither prove nor find more."""


def two_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds) -> tuple[int, ...]:
    """Two cuts: the best one, and where what it says is above the budget; on small problems also spread ones. Those
    whose copies peak lowest, which say most of what is to come: cuts to grow from."""
    if not isinstance(bounds, CutBounds) or bounds.best_cut < 0 or len(best.problem) > PAIRS:
        return ()
    if not effort.pairs:
        return bounds.best_cuts
    said = next((pairs for by, pairs in bounds.starts if by == bounds.named_best), frozenset[Pair]())
    others = above_budget(best.problem, said, best.budget)[:MOST_PAIRS]
    pairs = [(bounds.best_cut, other) for other in others if other != bounds.best_cut]
    if len(best.problem) <= SMALL:
        pairs += [one for one in second_cuts(best.problem, bounds.best_cut) if one not in pairs]
    idle, peaks = 0, dict[tuple[int, ...], int]()
    for cuts in pairs:
        if closed(best, bounds) or best.stopped() or idle == MOST_IDLE:
            break
        before = bounds.percent, best.percent
        _with_cuts(best, search, bounds, cuts, max(1, effort.nodes // 8))
        if bounds.starts:
            peaks[cuts] = search.peak_bytes(bounds.starts[-1][1])
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0
    return min(peaks, key=lambda cuts: peaks[cuts], default=bounds.best_cuts)


def growing_cuts(best: Incumbent, search: Search, effort: Effort, bounds: Bounds, cuts: tuple[int, ...]) -> None:
    """From these cuts on, two more at a time: where what the last ones say is above the budget."""
    if not isinstance(bounds, CutBounds) or len(best.problem) > SMALL or not effort.many:
        return
    idle = 0
    nodes = max(1, effort.nodes // 8 * max(1, SMALL // len(best.problem)))
    while cuts and idle < MOST_IDLE_ROUNDS and not closed(best, bounds) and not best.stopped():
        before = bounds.percent, best.percent
        _with_cuts(best, search, bounds, cuts, nodes)
        if searched_on(best, effort, bounds, OPEN):
            annealed_from(best, search, effort, bounds, bounds.starts)
        idle = idle + 1 if (bounds.percent, best.percent) == before else 0
        cuts = _more(best, bounds, cuts)


def _more(best: Incumbent, bounds: CutBounds, cuts: Collection[int]) -> tuple[int, ...]:
    """With the next cuts; none where there is nothing to add."""
    said = bounds.starts[-1][1] if bounds.starts else frozenset[Pair]()
    others = above_budget(best.problem, said, best.budget)
    apart = [one for one in others if all(abs(one - cut) > near(best.problem) for cut in cuts)]
    fresh = (apart or [one for one in others if one not in cuts])[:MORE]
    return tuple(sorted((*cuts, *fresh))) if fresh and bounds.starts and len(cuts) < MOST_CUTS else ()


def _with_cuts(best: Incumbent, search: Search, bounds: CutBounds, cuts: Collection[int], nodes: int) -> None:
    """What is proved and said with these cuts."""
    best.progress(f"bound {bounds.percent:.4f} %; {len(cuts)} cuts, {best.elapsed:.1f} s")
    bounds.seconds = best.left
    bounds.starts.clear()
    bounds.cuts(tuple(cuts), best.pairs or (), nodes)
    for by, pairs in bounds.starts:
        best.offer(search.repaired(best.budget, pairs), by)
