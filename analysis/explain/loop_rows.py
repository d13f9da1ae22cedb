"""The loops of a step that write stacks, each with its cut or the reason that it is not cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...support.diagnostics import position_of
from ..copies.loop_cuts import CutOf, LoopCut, loops_left_uncut
from ..step.crossings import Crossings
from ..step.stacks import LoopPair
from .executed_flops import runs_of


@dataclass(frozen=True, kw_only=True)
class LoopRow:
    """A loop and, if there is one, the loop that reads its stacks.

    Attributes:
        position, reader: Source positions of the loop and of the reading loop; `reader` is "" if no loop reads the
            stacks.
        trips: The trip count.
        stacks: The number of stacks that the reading loop reads.
        stack_bytes, kept_bytes: Bytes of the stacks that the reading loop reads, before and after the cut.
        again: The number of operations that are recomputed because of the cut.
        extra_flops: FLOPs of these operations over all iterations, including the iterations of the surrounding loops.
        reason: The reason that the loop is not cut; None if the cut is worthwhile.
    """

    position: str
    reader: str
    trips: int
    stacks: int
    stack_bytes: int
    kept_bytes: int
    again: int
    extra_flops: int
    reason: str | None


@dataclass(frozen=True)
class Loops:
    """The loops of a function.

    Attributes:
        rows: The descriptions of the loops.
        cut: The writing loops whose cut is worthwhile, mapped to their source positions.
    """

    rows: tuple[LoopRow, ...]
    cut: Mapping[Operation, str]


def explain_loops(function: FuncOp, cut_of: CutOf) -> Loops:
    """Describe all loops of the function and their cuts, outer loops before inner ones."""
    pending = [function.body.block]
    rows = list[LoopRow]()
    worthwhile = dict[Operation, str]()
    crossings = Crossings(function.body.block)
    while pending:
        block = pending.pop()
        for pair in crossings.loop_pairs(block):
            cut = cut_of(pair)
            if cut.why_not is None:
                worthwhile[pair.writer.op] = position_of(pair.writer.op)
            rows.append(_row_of_pair(pair, cut))
        rows.extend(_row_of_uncut_loop(op, reason) for op, reason in loops_left_uncut(block, crossings))
        pending.extend(_inner_blocks(block))
    return Loops(tuple(rows), worthwhile)


def _row_of_pair(pair: LoopPair, cut: LoopCut) -> LoopRow:
    return LoopRow(
        position=position_of(pair.writer.op),
        reader=position_of(pair.reader.op),
        trips=pair.writer.trips,
        stacks=len(pair.stacks),
        stack_bytes=sum(stack.bytes for stack in pair.stacks),
        kept_bytes=cut.kept_bytes,
        again=len(cut.repeated),
        extra_flops=cut.extra_flops * runs_of(pair.writer.op),
        reason=cut.why_not,
    )


def _row_of_uncut_loop(op: Operation, reason: str) -> LoopRow:
    return LoopRow(
        position=position_of(op),
        reader="",
        trips=0,
        stacks=0,
        stack_bytes=0,
        kept_bytes=0,
        again=0,
        extra_flops=0,
        reason=reason,
    )


def _inner_blocks(block: Block) -> Iterator[Block]:
    return (inner for op in block.ops for region in op.regions for inner in region.blocks)
