"""Loops that hold some carries in place of stacks: every so many, a chunk at a time run again; or in so many slots.

That is for what the smallest cut of the body leaves: often the carry of each iteration, which is too much where loops
are long. N slices are held between the loops before; after, the carries of each chunk, and the slices of one chunk; or
the carries of each slot, and the slice of one iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...options.loop_schedule import Schedule
from ...planning.binomial import advances
from ...rules.effects import why_impure
from ...rules.flops import flops
from ...rules.names import name_of
from ..step.counted_loops import Affine, CountedLoop
from ..step.order import read_values
from ..step.stacks import Link, Reading, Stack, links_of
from ..step.storage import value_bytes
from .loop_cuts import EFFECTS, WRITTEN_ON_THE_READER, MayRepeat

OTHER_TRIPS = "the loop that reads its stacks runs {reader} times, and it {writer} times"
OTHER_ORDER = "its slices are read neither in the order in which they are written nor in the reverse of it"
NOT_AGAIN = "{name} may not run again, and what the later loop reads is computed from it"
FORWARDS = "the later loop begins with what was written first, and slots are for the reverse"
NOT_LESS = "{words}, and what is run again from them, are {after} bytes, and its stacks {before}"


@dataclass(frozen=True)
class Demand:
    """What of a loop is needed: carries by number, those that iterations change, without the counter; and operations in
    program order."""

    carries: tuple[int, ...]
    operations: tuple[Operation, ...]

    @property
    def size(self) -> int:
        return len(self.operations)


def demand(
    loop: CountedLoop, wanted: Iterable[SSAValue], results: Iterable[int], known: Collection[SSAValue] = ()
) -> Demand:
    """What iterations need to make the wanted values of the body, and these results; values that are `known` are there
    already."""
    given = {loop.counter, *(argument.index for argument in loop.block.args if loop.is_invariant(argument.index))}
    carries, found, seen = set(results) - given, set[Operation](), set[SSAValue]()
    pending = [*wanted, *(loop.yielded[index] for index in carries)]
    while pending:
        value = pending.pop()
        if value in seen or value in known:
            continue
        seen.add(value)
        if isinstance(value, BlockArgument) and value.block is loop.block:
            if value.index not in carries | given:
                carries.add(value.index)
                pending.append(loop.yielded[value.index])
        elif isinstance(value, OpResult) and value.op.parent is loop.block and value.op not in found:
            found.add(value.op)
            pending.extend(read_values(value.op))
    return Demand(tuple(sorted(carries)), tuple(op for op in loop.block.ops if op in found))


@dataclass(frozen=True)
class Held(ABC):
    """A link whose stacks `dropped` are not held any more, but some carries. `again`: what makes their slices from
    these."""

    link: Link
    dropped: tuple[Stack, ...]
    again: Demand

    @property
    @abstractmethod
    def after_bytes(self) -> int:
        """Of all that is held at a time."""

    @property
    @abstractmethod
    def iterations(self) -> int:
        """How many are run once more."""

    @property
    @abstractmethod
    def words(self) -> str:
        """Which carries are held."""

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """The carries that are held: those that iterations change."""
        return self.again.carries

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Of what is not held any more."""
        gone = {stack.index for stack in self.dropped}
        return tuple(reading for reading in self.link.readings if reading.stack.index in gone)

    @property
    def is_reversed(self) -> bool:
        """Whether the later loop begins with what was written last."""
        return self.readings[0].written.scale < 0

    @property
    def before_bytes(self) -> int:
        return sum(stack.bytes for stack in self.dropped)

    @property
    def slice_bytes(self) -> int:
        """Of one iteration."""
        return self.before_bytes // self.link.writer.trips

    @property
    def carry_bytes(self) -> int:
        """Of one checkpoint."""
        return sum(value_bytes(self.link.writer.block.args[index]) for index in self.checkpoints)

    @property
    def extra_flops(self) -> int:
        return sum(map(flops, self.again.operations)) * self.iterations

    def why_not(self, may_repeat: MayRepeat) -> str | None:
        """Why the loops stay as they are; None where that holds less."""
        writer, reader = self.link.writer, self.link.reader
        if any(why_impure(op) for loop in (writer, reader) for op in loop.block.ops):
            return EFFECTS
        if not reader.is_bare:
            return WRITTEN_ON_THE_READER
        if writer.trips != reader.trips:
            return OTHER_TRIPS.format(writer=writer.trips, reader=reader.trips)
        if {reading.written for reading in self.readings} not in ({Affine(1, 0)}, {Affine(-1, writer.trips - 1)}):
            return OTHER_ORDER
        # Constants of the body are free.
        kept = [op for op in self.again.operations if (op.operands or op.regions) and not may_repeat(op)]
        if kept:
            return NOT_AGAIN.format(name=name_of(kept[0]))
        if self.after_bytes >= self.before_bytes:
            return NOT_LESS.format(words=self.words, after=self.after_bytes, before=self.before_bytes)
        return None


@dataclass(frozen=True)
class Chunks(Held):
    """The carries are held every so many iterations, and a chunk of these is run again at a time."""

    every: int

    @property
    def whole(self) -> int:
        """How many chunks have all their iterations."""
        return self.link.writer.trips // self.every

    @property
    def rest(self) -> int:
        """How many iterations the last chunk has that has not all."""
        return self.link.writer.trips - self.whole * self.every

    @property
    @override
    def after_bytes(self) -> int:
        """Of all checkpoints, that of the rest too, and of the slices of one chunk."""
        return (self.whole + (self.rest > 0)) * self.carry_bytes + self.every * self.slice_bytes

    @property
    @override
    def iterations(self) -> int:
        return self.link.writer.trips

    @property
    @override
    def words(self) -> str:
        return f"its carries every {self.every} iterations"


@dataclass(frozen=True)
class Slots(Held):
    """The carries are held in slots, which are filled anew while the later loop runs."""

    slots: int

    @property
    @override
    def after_bytes(self) -> int:
        """Of all slots, of the carry at which the later loop begins, and of the slices of one iteration."""
        return (self.slots + 1) * self.carry_bytes + self.slice_bytes

    @property
    @override
    def iterations(self) -> int:
        """But for those that the loop runs itself; and each once more for its slices."""
        trips = self.link.writer.trips
        return advances(trips, self.slots) - (trips - 1) + trips

    @property
    @override
    def words(self) -> str:
        return f"its carries in {self.slots} slots"

    @override
    def why_not(self, may_repeat: MayRepeat) -> str | None:
        found = super().why_not(may_repeat)
        return FORWARDS if found is None and not self.is_reversed else found


def held_of(link: Link, block: Block, schedule: Schedule) -> Held | None:
    """What is held of the link then; None where no stack is for this one reader."""
    others = [one for one in links_of(block) if one.writer.op is link.writer.op and one.reader.op is not link.reader.op]
    shared = {reading.stack.index for one in others for reading in one.readings}
    dropped = tuple(stack for stack in link.stacks if stack.index in link.only_read - shared)
    if not dropped:
        return None
    again = demand(link.writer, [stack.slice for stack in dropped], ())
    trips = link.writer.trips
    if schedule.kind == "binomial":
        return _slots(Slots(link, dropped, again, trips), schedule)
    if schedule.every is not None:
        return Chunks(link, dropped, again, min(schedule.every, trips))
    return _min_chunks(link, dropped, again)


def _slots(most: Slots, schedule: Schedule) -> Slots:
    """As many as are asked for, or as fit; one at least."""
    fit = schedule.slots
    if schedule.bytes is not None:
        fit = (schedule.bytes - most.slice_bytes) // max(1, most.carry_bytes) - 1
    return replace(most, slots=max(1, min(most.slots, fit or 1)))


NEARLY = 1.02
"""A number of iterations that divides the loop's needs no loops for a rest, and is taken where it costs hardly more."""


def _min_chunks(link: Link, dropped: tuple[Stack, ...], again: Demand) -> Chunks:
    """Those that hold the fewest bytes; of nearly the same, those without a rest."""
    trips, like = link.writer.trips, Chunks(link, dropped, again, 1)
    carry, slices = like.carry_bytes, like.slice_bytes
    held = {every: -(-trips // every) * carry + every * slices for every in range(1, trips + 1)}
    least = min(held.values())
    even = [every for every in held if trips % every == 0 and held[every] <= NEARLY * least]
    best = min(even or held, key=held.__getitem__)
    return Chunks(link, dropped, again, best)
