"""Schedules that save some carries of a loop instead of its stacks: every n-th carry, or a fixed number of slots.

    before   N slices are live between the writing loop and the reading loop
    chunks   the carry at the start of each chunk of n iterations, and the slices of one chunk
    slots    the carries in the slots, and the slice of one iteration

These schedules apply to the stacks that remain after the smallest cut of the body (`loop_cuts.py`). Often these stacks
hold the carry of every iteration. For a long loop this takes too much memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...options.loop_schedule import LoopSchedule
from ...planning.binomial import advances
from ...rules.effects import why_impure
from ...rules.flops import flops
from ...support.counted import counted
from ...support.operations import name_of
from ...support.units import readable_bytes
from ..step.counted_loops import Affine, CountedLoop
from ..step.order import read_values
from ..step.stacks import LoopPair, Stack, loop_pairs
from ..step.views import value_bytes
from .loop_cuts import EFFECTS, WRITTEN_ON_THE_READER, DroppedStacks, MayRepeat

OTHER_TRIPS = "the loop runs {writer} times, but the loop that reads its stacks runs {reader} times"
OTHER_ORDER = "its slices are read neither in the order in which they were written nor in reverse order"
NOT_AGAIN = "the values that the later loop reads depend on {name}, and {name} must not be recomputed"
FORWARDS = (
    "slots require that the later loop reads the slices in reverse order, but it reads them in the order in which they "
    "were written"
)
NOT_LESS = "{words} and the slices recomputed from them need {after}, but its stacks need only {before}"


@dataclass(frozen=True)
class LoopPart:
    """The part of a loop that computes certain values.

    Attributes:
        carries: The indices of the carries that iterations change, except the counter.
        operations: The operations of the body, in program order.
    """

    carries: tuple[int, ...]
    operations: tuple[Operation, ...]

    @property
    def size(self) -> int:
        return len(self.operations)


def needed_part(
    loop: CountedLoop, needed: Iterable[SSAValue], results: Iterable[int], available: Collection[SSAValue] = ()
) -> LoopPart:
    """Return the part of the loop that computes the given body values and results.

    Args:
        loop: The loop.
        needed: The values of the body to compute.
        results: The indices of the loop's results to compute.
        available: Values that need not be computed.
    """
    invariant = {loop.counter, *(argument.index for argument in loop.block.args if loop.is_invariant(argument.index))}
    carries = set(results) - invariant
    operations = set[Operation]()
    visited = set[SSAValue]()
    pending = [*needed, *(loop.yielded[index] for index in carries)]
    while pending:
        value = pending.pop()
        if value in visited or value in available:
            continue
        visited.add(value)
        if isinstance(value, BlockArgument) and value.block is loop.block:
            if value.index not in carries | invariant:
                carries.add(value.index)
                pending.append(loop.yielded[value.index])
        elif isinstance(value, OpResult) and value.op.parent is loop.block and value.op not in operations:
            operations.add(value.op)
            pending.extend(read_values(value.op))
    return LoopPart(tuple(sorted(carries)), tuple(op for op in loop.block.ops if op in operations))


@dataclass(frozen=True)
class SavedCarries(DroppedStacks, ABC):
    """A schedule that saves carries of the writing loop, and drops the stacks `dropped`.

    `recomputed_part`: the part of the writing loop that recomputes the slices of the dropped stacks from the carries.
    """

    recomputed_part: LoopPart

    @property
    @abstractmethod
    def after_bytes(self) -> int:
        """Peak bytes of the saved carries and the recomputed slices."""

    @property
    @abstractmethod
    def iterations(self) -> int:
        """Number of iterations that are rerun."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The phrase that messages use for the saved carries, such as "its carries every 8 iterations"."""

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The indices of the saved carries: those that change from one iteration to the next."""
        return self.recomputed_part.carries

    @property
    def is_reversed(self) -> bool:
        """Whether the reading loop starts with the slice that was written last."""
        return self.dropped_reads[0].written.scale < 0

    @property
    def slice_bytes(self) -> int:
        """Bytes that the dropped stacks hold for one iteration."""
        return self.dropped_bytes // self.pair.writer.trips

    @property
    def carry_bytes(self) -> int:
        """Bytes of the saved carries of one iteration."""
        return sum(value_bytes(self.pair.writer.block.args[index]) for index in self.checkpoints)

    @property
    def extra_flops(self) -> int:
        """FLOPs of all repeated iterations."""
        return sum(map(flops, self.recomputed_part.operations)) * self.iterations

    def why_not(self, may_repeat: MayRepeat) -> str | None:
        """Return the reason to leave the loops unchanged, or None if the schedule is valid and needs fewer bytes."""
        writer, reader = self.pair.writer, self.pair.reader
        if any(why_impure(op) for loop in (writer, reader) for op in loop.block.ops):
            return EFFECTS
        if not reader.is_bare:
            return WRITTEN_ON_THE_READER
        if writer.trips != reader.trips:
            return OTHER_TRIPS.format(writer=writer.trips, reader=reader.trips)
        if {reading.written for reading in self.dropped_reads} not in ({Affine(1, 0)}, {Affine(-1, writer.trips - 1)}):
            return OTHER_ORDER
        # Operations without operands and regions are constants. They may always be repeated.
        once = [op for op in self.recomputed_part.operations if (op.operands or op.regions) and not may_repeat(op)]
        if once:
            return NOT_AGAIN.format(name=name_of(once[0]))
        if self.after_bytes >= self.dropped_bytes:
            after, before = readable_bytes(self.after_bytes), readable_bytes(self.dropped_bytes)
            return NOT_LESS.format(words=self.description, after=after, before=before)
        return None


@dataclass(frozen=True)
class Chunks(SavedCarries):
    """A schedule that saves the carries every `every` iterations.

    The iterations from one saved carry to the next, a chunk, are recomputed together.
    """

    every: int

    @property
    def whole_chunks(self) -> int:
        """Number of complete chunks."""
        return self.pair.writer.trips // self.every

    @property
    def remainder(self) -> int:
        """Number of iterations in the incomplete last chunk; 0 if there is none."""
        return self.pair.writer.trips - self.whole_chunks * self.every

    @property
    @override
    def after_bytes(self) -> int:
        """Bytes of all saved carries, including the carry of an incomplete chunk, plus the slices of one chunk."""
        return (self.whole_chunks + (self.remainder > 0)) * self.carry_bytes + self.every * self.slice_bytes

    @property
    @override
    def iterations(self) -> int:
        return self.pair.writer.trips

    @property
    @override
    def description(self) -> str:
        return f"its carries every {f'{self.every} iterations' if self.every > 1 else 'iteration'}"


@dataclass(frozen=True)
class Slots(SavedCarries):
    """A schedule that saves carries in a fixed number of slots. The slots are reused while the reading loop runs."""

    slots: int

    @property
    @override
    def after_bytes(self) -> int:
        """Bytes of all slots, plus the carry from which the reading loop starts and the slices of one iteration."""
        return (self.slots + 1) * self.carry_bytes + self.slice_bytes

    @property
    @override
    def iterations(self) -> int:
        """Number of iterations that are rerun: iterations that advance from a slot to a later carry, and one per
        iteration to recompute its slices."""
        trips = self.pair.writer.trips
        return advances(trips, self.slots) - (trips - 1) + trips

    @property
    @override
    def description(self) -> str:
        return f"its carries in {counted(self.slots, 'slot')}"

    @override
    def why_not(self, may_repeat: MayRepeat) -> str | None:
        reason = super().why_not(may_repeat)
        return FORWARDS if reason is None and not self.is_reversed else reason


def saved_carries_of(pair: LoopPair, block: Block, schedule: LoopSchedule) -> SavedCarries | None:
    """Return the schedule for a pair of loops, or None if no stack has the reading loop as its only reader.

    Args:
        pair: The writing loop and the reading loop.
        block: The block that contains both.
        schedule: The loop schedule that the user requests.
    """
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
