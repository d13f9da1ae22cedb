"""recompute-loops: what a loop stacks up for a later loop is computed again there, from the smallest set of stacks.

    %r:3 = stablehlo.while … do { …; %s1 = dynamic_update_slice %s, sin(tanh(%h)), %i }     forward pass of a scan
    …    = stablehlo.while … do { %x = dynamic_slice %r#2, 7 - %i; … }                      backward pass

becomes two loops that hand on `%h` alone, say; the second computes `sin(tanh(%h))` again. `lax.scan` over layers comes
as such. Loops inside of loops, branches and bodies per device are looked at too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from ..analysis.copies.loop_cuts import LoopCut, MayRepeat, loop_cut
from ..analysis.request.in_loops import repeatable
from ..analysis.request.selection import AUTO, Selection
from ..analysis.step.functions import functions_of
from ..analysis.step.stacks import links_of
from ..dialects.context import tell
from ..dialects.dead_code import drop_dead_code
from ..dialects.diagnostics import Remark
from ..planning.objective import WORTH_IT
from .mark import MarkPass
from .plans.apply_plan import Numbers
from .rolled.repeat import repeat


@dataclass(frozen=True)
class Rolled:
    """What was done: how many operations are repeated, and what is said of the loops."""

    copies: int
    remarks: tuple[Remark, ...]


NOTHING_ROLLED = Rolled(0, ())


def recompute_loops(module: ModuleOp, selection: Selection = AUTO) -> Rolled:
    """Cut every pair of loops that hands on stacks, in place."""
    numbers, remarks, copies = Numbers.free_in(module), list[Remark](), 0
    may_repeat = repeatable(module, selection)
    for function in functions_of(module):
        pending = [function.body.block]
        while pending:
            block = pending.pop()
            while (cut := _next_cut(block, may_repeat)) is not None:
                remarks.append(_said(cut))
                copies += len(repeat(cut, numbers).copies)
            pending.extend(_inside(block))
        drop_dead_code(function.body)
    return Rolled(copies, tuple(remarks))


def _inside(block: Block) -> Iterator[Block]:
    return (inner for op in block.ops for region in op.regions for inner in region.blocks)


def _next_cut(block: Block, may_repeat: MayRepeat) -> LoopCut | None:
    """A cut of the block that is worth it. It is found anew each time: loops are replaced when they are cut."""
    for link in links_of(block):
        cut = loop_cut(link, may_repeat)
        if cut.dropped_bytes - cut.new_bytes > WORTH_IT * cut.dropped_bytes:
            return cut
    return None


def _said(cut: LoopCut) -> Remark:
    link, stacks = cut.link, len(cut.dropped)
    return Remark(
        link.writer.op,
        f"the loop of {link.writer.trips} iterations hands on {stacks} stacks less, {cut.dropped_bytes} bytes, and "
        f"{cut.new_bytes} bytes of new ones: the loop that reads them repeats {len(cut.again)} operations",
    )


@dataclass(frozen=True)
class LoopsPass(MarkPass):
    """Compute again, in the loop that reads them, what an earlier loop stacks up.

    What is recomputed is said as in recompute-mark.
    """

    name = "recompute-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tell(ctx, recompute_loops(op, self).remarks)
