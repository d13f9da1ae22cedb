"""How much of their stacks loops keep: all sets of stacks that are least at some price of a byte.

Between all stacks, which take no work, and the smallest set lie others, that keep what is dear to make. They are the
corners of a convex curve, found by the price at which two that are known cost the same (Eisner and Severance, 1976).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from xdsl.ir import Block

from ...support.units import parse_budget
from ..step.crossings import Crossings
from ..step.stacks import Link
from .loop_cuts import LoopCut, MayRepeat, loop_cut

MOST = 16
"""So many are looked for."""


@dataclass(frozen=True)
class Corner:
    """Bytes of stacks that all loops keep together, FLOPs that all iterations take more; `price`: as in `loop_cut`, 0
    for all stacks, None for the smallest sets."""

    kept_bytes: int
    extra_flops: int
    price: Fraction | None


def corners(block: Block, may_repeat: MayRepeat) -> list[Corner]:
    """Of the loops of the block and of those inside, from all stacks to the smallest sets; empty without loops."""
    links = list(_links_in(block))
    if not links:
        return []
    everything = Corner(sum(stack.bytes for link in links for stack in link.stacks), 0, Fraction(0))
    smallest = _at(links, may_repeat, None)
    found = [everything, smallest]
    pending = [(everything, smallest)]
    while pending and len(found) < MOST:
        more, less = pending.pop(0)
        if less.extra_flops <= more.extra_flops or less.kept_bytes >= more.kept_bytes:
            continue
        price = Fraction(less.extra_flops - more.extra_flops, more.kept_bytes - less.kept_bytes)
        between = _at(links, may_repeat, price)
        if less.kept_bytes < between.kept_bytes < more.kept_bytes:
            found.append(between)
            pending += [(more, between), (between, less)]
    return sorted(found, key=lambda one: (-one.kept_bytes, one.extra_flops))


def corner_within(block: Block, may_repeat: MayRepeat, keep: str) -> Corner | None:
    """The one that takes the least work of those that keep so much, a share or bytes; the smallest sets where none
    keeps so little; None without loops. Raises `ValueError` for what is neither."""
    found = corners(block, may_repeat)
    if not found:
        return None
    most = parse_budget(keep, found[0].kept_bytes)
    within = [one for one in found if most is not None and one.kept_bytes <= most]
    return within[0] if within else found[-1]


def _links_in(block: Block) -> Iterator[Link]:
    pending, crossings = [block], Crossings(block)
    while pending:
        block = pending.pop()
        yield from crossings.links_of(block)
        pending.extend(inner for op in block.ops for region in op.regions for inner in region.blocks)


def _at(links: Sequence[Link], may_repeat: MayRepeat, price: Fraction | None) -> Corner:
    cuts = [loop_cut(link, may_repeat, price) for link in links]
    kept = sum(_kept(cut) for cut in cuts)
    return Corner(kept, sum(cut.extra_flops for cut in cuts if cut.why_not is None), price)


def _kept(cut: LoopCut) -> int:
    return cut.kept_bytes if cut.why_not is None else sum(stack.bytes for stack in cut.link.stacks)
