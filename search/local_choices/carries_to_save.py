"""Choose the carries that a pair of loops saves instead of its stacks: the chunk size, or the number of slots."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Block

from ...analysis.copies.loop_chunks import Chunks, LoopPart, SavedCarries, Slots, needed_part
from ...analysis.copies.loop_cuts import MayRepeat
from ...analysis.step.counted_loops import Affine
from ...analysis.step.stacks import LoopPair, Stack, loop_pairs
from ...options.loop_schedule import LoopSchedule
from ...rules.effects import why_impure
from ...support.operations import name_of
from ...support.units import readable_bytes

EFFECTS = "it has effects, and the proof cannot show that two loops with effects are equal"
WRITTEN_ON_THE_READER = "the loop that reads its stacks has attributes that a rewrite would lose"
OTHER_TRIPS = "the loop runs {writer} times, but the loop that reads its stacks runs {reader} times"
OTHER_ORDER = "its slices are read neither in the order in which they were written nor in reverse order"
NOT_AGAIN = "the values that the later loop reads depend on {name}, and {name} must not be recomputed"
FORWARDS = (
    "slots require that the later loop reads the slices in reverse order, but it reads them in the order in which they "
    "were written"
)
NOT_LESS = "{words} and the slices recomputed from them need {after}, but its stacks need only {before}"


def saved_carries_of(
    pair: LoopPair, block: Block, schedule: LoopSchedule, may_repeat: MayRepeat
) -> SavedCarries | None:
    """Return the carries to save for a pair of loops; None if every stack has readers besides the reading loop.

    Args:
        pair: The writing loop and the reading loop.
        block: The block that contains both.
        schedule: The loop schedule that the user requests.
        may_repeat: A predicate that tells whether an operation may be recomputed.

    Returns:
        The carries. Their `why_not` is set if they cannot be saved, or if they need no fewer bytes than the stacks.
    """
    saved = _requested_carries(pair, block, schedule)
    return None if saved is None else replace(saved, why_not=_why_not(saved, may_repeat))


def _why_not(saved: SavedCarries, may_repeat: MayRepeat) -> str | None:
    """Return the reason to leave the loops unchanged, or None if the schedule is valid and needs fewer bytes."""
    writer, reader = saved.pair.writer, saved.pair.reader
    if any(why_impure(op) for loop in (writer, reader) for op in loop.block.ops):
        return EFFECTS
    if not reader.is_bare:
        return WRITTEN_ON_THE_READER
    if writer.trips != reader.trips:
        return OTHER_TRIPS.format(writer=writer.trips, reader=reader.trips)
    if {reading.written for reading in saved.dropped_reads} not in ({Affine(1, 0)}, {Affine(-1, writer.trips - 1)}):
        return OTHER_ORDER
    # Operations without operands and regions are constants. They may always be repeated.
    once = [op for op in saved.recomputed_part.operations if (op.operands or op.regions) and not may_repeat(op)]
    if once:
        return NOT_AGAIN.format(name=name_of(once[0]))
    if saved.after_bytes >= saved.dropped_bytes:
        after, before = readable_bytes(saved.after_bytes), readable_bytes(saved.dropped_bytes)
        return NOT_LESS.format(words=saved.description, after=after, before=before)
    return FORWARDS if isinstance(saved, Slots) and not saved.is_reversed else None


def _requested_carries(pair: LoopPair, block: Block, schedule: LoopSchedule) -> SavedCarries | None:
    others = [
        other
        for other in loop_pairs(block)
        if other.writer.op is pair.writer.op and other.reader.op is not pair.reader.op
    ]
    shared = {reading.stack.index for other in others for reading in other.readings}
    dropped = tuple(stack for stack in pair.stacks if stack.index in pair.only_read - shared)
    if not dropped:
        return None
    recomputed = needed_part(pair.writer, [stack.slice for stack in dropped], ())
    trips = pair.writer.trips
    if schedule.kind == "binomial":
        return _slots(Slots(pair, dropped, recomputed, trips), schedule)
    if schedule.every is not None:
        return Chunks(pair, dropped, recomputed, min(schedule.every, trips))
    return _min_chunks(pair, dropped, recomputed)


def _slots(most: Slots, schedule: LoopSchedule) -> Slots:
    """Limit the number of slots to the number or the bytes that the schedule gives, but use at least one slot."""
    fit = schedule.slots
    if schedule.bytes is not None:
        fit = (schedule.bytes - most.slice_bytes) // max(1, most.carry_bytes) - 1
    return replace(most, slots=max(1, min(most.slots, fit or 1)))


EQUAL_SIZE_FACTOR = 1.02
"""A chunk size that divides the trip count is preferred if it needs at most `EQUAL_SIZE_FACTOR` times the fewest bytes,
because it needs no extra loops for an incomplete chunk."""


def _min_chunks(pair: LoopPair, dropped: tuple[Stack, ...], recomputed: LoopPart) -> Chunks:
    """Return the chunks with the chunk size that needs the fewest bytes. Among sizes with nearly equal bytes, prefer a
    divisor of the trip count."""
    trips = pair.writer.trips
    chunks = Chunks(pair, dropped, recomputed, 1)
    carry, slices = chunks.carry_bytes, chunks.slice_bytes
    total_bytes = {every: -(-trips // every) * carry + every * slices for every in range(1, trips + 1)}
    least = min(total_bytes.values())
    divisors = [
        every for every in total_bytes if trips % every == 0 and total_bytes[every] <= EQUAL_SIZE_FACTOR * least
    ]
    best = min(divisors or total_bytes, key=total_bytes.__getitem__)
    return Chunks(pair, dropped, recomputed, best)
