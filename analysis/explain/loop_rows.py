"""What loops hand on to later loops, and what it would be if the later ones computed it again: rows of `-t explain`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from ...options.selection import Selection
from ...support.diagnostics import position_of
from ..copies.loop_cuts import left_alone, loop_cut
from ..request.in_loops import repeatable
from ..step.crossings import Crossings


@dataclass(frozen=True)
class LoopRow:
    """One loop, and the one that reads its stacks, if there is one. `stack_bytes`: what is handed on now, `kept_bytes`:
    what would be; `again`: how many operations are repeated then, which take `extra_flops` in all iterations. `reason`
    is None where that is worth it."""

    position: str
    reader: str
    trips: int
    stacks: int
    stack_bytes: int
    kept_bytes: int
    again: int
    extra_flops: int
    reason: str | None


def loop_rows(function: FuncOp, selection: Selection) -> tuple[LoopRow, ...]:
    """Of all loops in the function, from the outside in. Raises `UnknownPolicy`."""
    may_repeat, pending, rows = repeatable(function, selection), [function.body.block], list[LoopRow]()
    crossings = Crossings(function.body.block)
    while pending:
        block = pending.pop()
        for link in crossings.links_of(block):
            cut = loop_cut(link, may_repeat)
            rows.append(
                LoopRow(
                    position=position_of(link.writer.op),
                    reader=position_of(link.reader.op),
                    trips=link.writer.trips,
                    stacks=len(link.stacks),
                    stack_bytes=sum(stack.bytes for stack in link.stacks),
                    kept_bytes=cut.kept_bytes,
                    again=len(cut.again),
                    extra_flops=cut.extra_flops,
                    reason=cut.why_not,
                )
            )
        rows.extend(
            LoopRow(position_of(op), "", 0, 0, 0, 0, 0, 0, reason) for op, reason in left_alone(block, crossings)
        )
        pending.extend(_inside(block))
    return tuple(rows)


def _inside(block: Block) -> Iterator[Block]:
    return (inner for op in block.ops for region in op.regions for inner in region.blocks)
