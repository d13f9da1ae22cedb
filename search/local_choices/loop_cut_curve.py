"""The trade-off curve between the bytes of the stacks that loops keep and the FLOPs to recompute all remaining stacks.

Keeping all stacks needs no extra FLOPs, and keeping the smallest sets of stacks needs the most extra FLOPs. The sets
that minimize the total cost for some price of a byte, in FLOPs, are the corners of a convex curve. Each new corner is
found at the price at which two known corners cost the same (Eisner and Severance, "Mathematical techniques for
efficient record segmentation in large shared databases", 1976).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.ir import Block

from ...analysis.copies.loop_cuts import LoopCut, MayRepeat
from ...analysis.step.crossings import Crossings
from ...analysis.step.stacks import LoopPair
from ...options.loop_schedule import LoopSchedule
from .min_loop_cut import loop_cut

MAX_CORNERS = 16
"""The maximum number of corners to compute. Each corner costs a minimum cut for every pair of loops. If the curve has
more corners, some between the computed ones are missing."""


@dataclass(frozen=True)
class Corner:
    """A corner of the curve of bytes and FLOPs.

    Attributes:
        kept_bytes: Bytes of the stacks that all loops keep.
        extra_flops: FLOPs of the recomputation over all iterations.
        price: The price of a byte, as in `loop_cut`; 0 if all stacks are kept, None for the smallest sets.
    """

    kept_bytes: int
    extra_flops: int
    price: Fraction | None


def corners(block: Block, may_repeat: MayRepeat) -> list[Corner]:
    """Return the corners for the loops of the block and all nested loops, from all stacks to the smallest sets.

    The list is empty if no loop reads stacks of another loop.
    """
    pairs = list(_pairs_in(block))
    if not pairs:
        return []
    everything = Corner(sum(stack.bytes for pair in pairs for stack in pair.stacks), 0, Fraction(0))
    smallest = _corner_at(pairs, may_repeat, None)
    found_corners = [everything, smallest]
    pending = [(everything, smallest)]
    while pending and len(found_corners) < MAX_CORNERS:
        more, less = pending.pop(0)
        if less.extra_flops <= more.extra_flops or less.kept_bytes >= more.kept_bytes:
            continue
        price = Fraction(less.extra_flops - more.extra_flops, more.kept_bytes - less.kept_bytes)
        between = _corner_at(pairs, may_repeat, price)
        if less.kept_bytes < between.kept_bytes < more.kept_bytes:
            found_corners.append(between)
            pending += [(more, between), (between, less)]
    return sorted(found_corners, key=lambda corner: (-corner.kept_bytes, corner.extra_flops))


def corner_within(block: Block, may_repeat: MayRepeat, schedule: LoopSchedule) -> Corner | None:
    """Return the corner with the fewest extra FLOPs whose stacks are within the limit of the schedule.

    Args:
        block: The block with the loops.
        may_repeat: A predicate that tells whether an operation may be recomputed.
        schedule: The loop schedule that the user requests.

    Returns:
        The corner, or the corner of the smallest sets if no corner is within the limit. None if no loop reads stacks of
        another loop, or if the schedule sets no limit.
    """
    candidates = corners(block, may_repeat) if schedule.keep is not None else ()
    if not candidates or (limit_bytes := schedule.kept_limit(candidates[0].kept_bytes)) is None:
        return None
    within = [corner for corner in candidates if corner.kept_bytes <= limit_bytes]
    return within[0] if within else candidates[-1]


def _pairs_in(block: Block) -> Iterator[LoopPair]:
    pending, crossings = [block], Crossings(block)
    while pending:
        block = pending.pop()
        yield from crossings.loop_pairs(block)
        pending.extend(inner for op in block.ops for region in op.regions for inner in region.blocks)


def _corner_at(pairs: Sequence[LoopPair], may_repeat: MayRepeat, price: Fraction | None) -> Corner:
    cuts = [loop_cut(pair, may_repeat, price) for pair in pairs]
    kept_bytes = sum(_kept_bytes(cut) for cut in cuts)
    return Corner(kept_bytes, sum(cut.extra_flops for cut in cuts if cut.why_not is None), price)


def _kept_bytes(cut: LoopCut) -> int:
    return cut.kept_bytes if cut.why_not is None else sum(stack.bytes for stack in cut.pair.stacks)
