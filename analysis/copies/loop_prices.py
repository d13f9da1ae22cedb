"""Trade-off between the stacks that loops keep and extra FLOPs: the sets of stacks that are optimal at some byte price.

Between all stacks, which need no extra FLOPs, and the smallest set lie sets that keep expensive values. They are the
corners of a convex curve. Each new corner is found at the price at which two known corners cost the same (Eisner and
Severance, 1976).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.ir import Block

from ...support.units import parse_budget
from ..step.crossings import Crossings
from ..step.stacks import LoopPair
from .loop_cuts import LoopCut, MayRepeat, loop_cut

MOST = 16
"""Maximum number of corners."""


@dataclass(frozen=True)
class Corner:
    """One corner of the curve.

    kept_bytes: bytes of the stacks of all loops.
    extra_flops: recomputed FLOPs of all iterations.
    price: as in `loop_cut`; 0 for all stacks, None for the smallest sets.
    """

    kept_bytes: int
    extra_flops: int
    price: Fraction | None


def corners(block: Block, may_repeat: MayRepeat) -> list[Corner]:
    """The corners for the loops of the block and nested loops, from all stacks to the smallest sets.

    Empty if there are no links between loops.
    """
    links = list(_links_in(block))
    if not links:
        return []
    everything = Corner(sum(stack.bytes for link in links for stack in link.stacks), 0, Fraction(0))
    smallest = _corner_at(links, may_repeat, None)
    known_corners = [everything, smallest]
    pending = [(everything, smallest)]
    while pending and len(known_corners) < MOST:
        more, less = pending.pop(0)
        if less.extra_flops <= more.extra_flops or less.kept_bytes >= more.kept_bytes:
            continue
        price = Fraction(less.extra_flops - more.extra_flops, more.kept_bytes - less.kept_bytes)
        between = _corner_at(links, may_repeat, price)
        if less.kept_bytes < between.kept_bytes < more.kept_bytes:
            known_corners.append(between)
            pending += [(more, between), (between, less)]
    return sorted(known_corners, key=lambda corner: (-corner.kept_bytes, corner.extra_flops))


def corner_within(block: Block, may_repeat: MayRepeat, keep: str) -> Corner | None:
    """The corner with the fewest extra FLOPs that keeps at most `keep`, a share or bytes.

    The smallest sets if no corner keeps so little; None without loops. Raises `ValueError` if `keep` is neither a share
    nor bytes.
    """
    candidates = corners(block, may_repeat)
    if not candidates:
        return None
    limit_bytes = parse_budget(keep, candidates[0].kept_bytes)
    within = [corner for corner in candidates if limit_bytes is not None and corner.kept_bytes <= limit_bytes]
    return within[0] if within else candidates[-1]


def _links_in(block: Block) -> Iterator[LoopPair]:
    pending, crossings = [block], Crossings(block)
    while pending:
        block = pending.pop()
        yield from crossings.links_of(block)
        pending.extend(inner for op in block.ops for region in op.regions for inner in region.blocks)


def _corner_at(links: Sequence[LoopPair], may_repeat: MayRepeat, price: Fraction | None) -> Corner:
    cuts = [loop_cut(link, may_repeat, price) for link in links]
    kept = sum(_kept_bytes(cut) for cut in cuts)
    return Corner(kept, sum(cut.extra_flops for cut in cuts if cut.why_not is None), price)


def _kept_bytes(cut: LoopCut) -> int:
    return cut.kept_bytes if cut.why_not is None else sum(stack.bytes for stack in cut.link.stacks)
