"""What is decided for one block is used for all that are alike: one is solved, the others are given its copies.

Or two, or three blocks in a row, and those in turn: what is kept in one block may stand for what is made again in the
next. The blocks at both ends differ from those in the middle, so each result is repaired and cleaned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .effort import Bounds, closed
from .incumbent import Incumbent
from .problem import Pair
from .repeats import Repeats, repeats
from .search import Search

WIDTHS = (1, 2, 3)
"""Blocks in a row whose copies are used for all."""
TRIES, MOST_TRIES = 60_000, 150
"""Rows of blocks that are tried: so many by the operations of the problem, and at most."""
ALIKE = " + alike in all blocks"


def reused(best: Incumbent, search: Search, bounds: Bounds) -> None:
    """The best copies with those of a block in place of the others', as long as that gets cheaper."""
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
    """The copies in the stages of `width` blocks from `first` on, in all such rows of blocks; those in stages of no
    block stay."""
    steps = range(-width * (first // width + 1), alike.count - first + width, width)
    found = {(t, op) for t, op in pairs if not alike.inside(t)}
    for t, op in pairs:
        if alike.inside(t) and first <= alike.block[t] < first + width:
            for by in steps:
                stage = alike.shifted(t, by)
                again = alike.shifted(op, by) if alike.inside(op) else op
                if stage is not None and again is not None and again < stage:
                    found.add((stage, again))
    return frozenset(found)


def _rows(count: int, tries: int) -> Iterator[tuple[int, int]]:
    """The first of the blocks, and how many: evenly over all of them, where there are more than may be tried."""
    every = max(1, -(-count * len(WIDTHS) // tries))
    for width in WIDTHS:
        for first in range(0, count - width + 1, every):
            yield first, width
