"""Make the remarks of `recompute-loops` on the loops that it rewrites or leaves unchanged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from xdsl.ir import Operation

from ...analysis.copies.loop_chunks import SavedCarries
from ...analysis.copies.loop_cuts import NOT_COUNTED, SMALLEST, CutOf, LoopCut, MayRepeat
from ...analysis.step.exchanges import holds_collective
from ...analysis.step.stacks import LoopPair
from ...rules.effects import why_impure
from ...support.counted import counted, counted_are
from ...support.operations import name_of
from ...support.remarks import Remark, RemarkKind, Topic
from ...support.units import format_bytes, readable_bytes

WHOLE = "the loop is recomputed as a whole with its segment, because that needs less memory than a cut"
EXCHANGES = "; {name} in it contains collectives, and collectives are recomputed only with collectives=true"
_TOPICS = {
    SMALLEST: Topic.LOOP_STACKS_SMALLEST,
    NOT_COUNTED: Topic.LOOP_NOT_COUNTED,
}
"""The topic of a remark on an unchanged loop, by reason."""


def remark_on_uncut(op: Operation, reason: str, note: str = "", topic: Topic | None = None) -> Remark:
    """Return a remark that a loop stays unchanged. `topic`: replaces the default topic of the reason."""
    return Remark(op, f"the loop is left as it is: {reason}{note}", topic=topic or _TOPICS.get(reason, Topic.LOOP_LEFT))


def remarks_on_cuts_not_worthwhile(
    pairs: Iterable[LoopPair], may_repeat: MayRepeat, cut_of: CutOf, whole: Collection[Operation]
) -> Iterator[Remark]:
    """Yield a remark for each pair of loops that is recomputed as a whole, or whose cut is not worthwhile."""
    for pair in pairs:
        if pair.writer.op in whole:
            yield Remark(pair.writer.op, WHOLE)
        elif pair.only_read and (reason := cut_of(pair).why_not) is not None:
            exchanges = [op for op in pair.writer.block.ops if holds_collective(op) and not may_repeat(op)]
            if reason == SMALLEST and exchanges:
                note = EXCHANGES.format(name=name_of(exchanges[0]))
                yield remark_on_uncut(pair.writer.op, reason, note, Topic.LOOP_COLLECTIVES)
            else:
                yield remark_on_uncut(pair.writer.op, reason)


def remark_on_saved_carries(saved: SavedCarries) -> Remark:
    writer, size = saved.pair.writer, saved.recomputed_part.size
    after, before = readable_bytes(saved.after_bytes), readable_bytes(saved.dropped_bytes)
    return Remark(
        writer.op,
        f"the loop of {counted(writer.trips, 'iteration')} saves {saved.description}, {after} instead of {before} of "
        f"stacks; {counted_are(saved.iterations, 'iteration')} rerun, with {counted(size, 'operation')} each",
        RemarkKind.PASSED,
    )


def remark_on_cut(cut: LoopCut) -> Remark:
    pair = cut.pair
    stacks = counted(len(cut.dropped), "stack")
    return Remark(
        pair.writer.op,
        f"the loop of {counted(pair.writer.trips, 'iteration')} drops {stacks} ({format_bytes(cut.dropped_bytes)}) and "
        f"adds {format_bytes(cut.new_bytes)} of new stacks: the loop that reads them recomputes "
        f"{counted(len(cut.repeated), 'operation')}, before simplification",
        RemarkKind.PASSED,
        amounts=(("dropped_bytes", cut.dropped_bytes), ("new_bytes", cut.new_bytes), ("operations", len(cut.repeated))),
    )


def remarks_on_unrepeated(cut: LoopCut) -> Iterator[Remark]:
    """Yield one remark for each reason why operations of the loop are not repeated. Each remark is located at the first
    operation with its reason."""
    reasons = dict[str, Operation]()
    for op in cut.pair.writer.block.ops:
        if op is not cut.pair.writer.block.last_op and (reason := why_impure(op)) is not None:
            reasons.setdefault(reason, op)
    for reason, op in reasons.items():
        saved = ", and its results are saved" if op.results else ""
        yield Remark(op, f"{name_of(op)} runs once in each iteration{saved}: {reason}")
