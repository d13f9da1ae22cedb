"""Transfer the copies of one block to all blocks of a step that consists of repeated blocks.

The copies of two or three consecutive blocks are also transferred together, because keeping a value in one block may
make a copy in the next block unnecessary. The first and the last block differ from the blocks in between, so each
result is repaired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .effort import Bounds, is_closed
from .incumbent import Incumbent
from .local_search import LocalSearch
from .problem import Pair
from .provenance import Improvement
from .repeats import Repeats, repeats

WIDTHS = (1, 2, 3)
"""The numbers of consecutive blocks whose copies are transferred together."""
TRIES, MAX_TRIES = 60_000, 150
"""The number of tries is `TRIES` divided by the number of operations, but at most `MAX_TRIES`."""


def transfer_blocks(best: Incumbent, search: LocalSearch, bounds: Bounds) -> None:
    """For each row of consecutive blocks, try the plan in which all blocks have the copies of this row. Repeat while
    the plan gets cheaper.

    Args:
        best: The incumbent, to which the plans are offered.
        search: The search that repairs the plans.
        bounds: The lower bounds; nothing is tried once the gap is closed.
    """
    tries = min(MAX_TRIES, TRIES // max(1, len(best.problem)))
    if best.pairs is None or is_closed(best, bounds) or best.should_stop() or not tries:
        return
    blocks = repeats(best.problem)
    while blocks is not None:
        best.progress(f"copies of one block in all {blocks.count} equal blocks, {best.elapsed_seconds:.1f} s")
        percent_before, pairs = best.percent, best.pairs
        provenance = best.provenance.with_improvement(Improvement.BLOCK_TRANSFER)
        for first, width in _rows(blocks.count, tries):
            if is_closed(best, bounds) or best.should_stop():
                return
            best.offer(search.repair(best.budget, spread_to_blocks(blocks, pairs, first, width)), provenance)
        if best.percent >= percent_before:
            return


def spread_to_blocks(blocks: Repeats, pairs: Collection[Pair], first: int, width: int = 1) -> frozenset[Pair]:
    """Return copies in which all blocks have the copies of one row of blocks. Copies in stages outside blocks stay
    unchanged.

    Args:
        blocks: The repeated blocks.
        pairs: The copies of a plan.
        first: The first block of the row.
        width: The number of blocks of the row.
    """
    steps = range(-width * (first // width + 1), blocks.count - first + width, width)
    transferred = {(t, op) for t, op in pairs if not blocks.is_inside(t)}
    for t, op in pairs:
        if blocks.is_inside(t) and first <= blocks.block[t] < first + width:
            for by in steps:
                stage = blocks.counterpart(t, by)
                copied = blocks.counterpart(op, by) if blocks.is_inside(op) else op
                if stage is not None and copied is not None and copied < stage:
                    transferred.add((stage, copied))
    return frozenset(transferred)


def _rows(count: int, tries: int) -> Iterator[tuple[int, int]]:
    """Yield the first block and the width of each row to try. If there are more rows than tries, the rows are evenly
    spaced."""
    step = max(1, -(-count * len(WIDTHS) // tries))
    for width in WIDTHS:
        for first in range(0, count - width + 1, step):
            yield first, width
