"""A loop in chunks: its carries are kept every so many iterations, and one chunk at a time is computed again.

That is for what the smallest cut of the body leaves: often the carry of each iteration, which is too much where loops
are long. N slices are held between the loops before; after, the carries of each chunk, and the slices of one chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...rules.effects import why_impure
from ...rules.flops import flops
from ...rules.names import name_of
from ..step.counted_loops import Affine, CountedLoop
from ..step.order import read_values
from ..step.stacks import Link, Reading, Stack, links_of
from ..step.storage import value_bytes
from .loop_cuts import EFFECTS, MayRepeat

OTHER_TRIPS = "the loop that reads its stacks runs {reader} times, and it {writer} times"
OTHER_ORDER = "its slices are read neither in the order in which they are written nor in the reverse of it"
NOT_AGAIN = "{name} may not run again, and what the later loop reads is computed from it"
NOT_LESS = "its checkpoints every {every} iterations and one chunk hold {after} bytes, and its stacks {before}"


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
class Chunks:
    """A link whose stacks `dropped` are not held any more. `again`: what makes their slices from the carries."""

    link: Link
    dropped: tuple[Stack, ...]
    again: Demand
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
    def checkpoints(self) -> tuple[int, ...]:
        """The carries that are kept for each chunk: those that iterations change."""
        return self.again.carries

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Of what is not held any more."""
        gone = {stack.index for stack in self.dropped}
        return tuple(one for one in self.link.readings if one.stack.index in gone)

    @property
    def is_reversed(self) -> bool:
        """Whether the later loop begins with what was written last."""
        return self.readings[0].written.scale < 0

    @property
    def before_bytes(self) -> int:
        return sum(stack.bytes for stack in self.dropped)

    @property
    def carry_bytes(self) -> int:
        """Of one checkpoint."""
        return sum(value_bytes(self.link.writer.block.args[index]) for index in self.checkpoints)

    @property
    def after_bytes(self) -> int:
        """Of all checkpoints, that of the rest too, and of the slices of one chunk."""
        slices = self.before_bytes // self.link.writer.trips
        return (self.whole + (self.rest > 0)) * self.carry_bytes + self.every * slices

    @property
    def extra_flops(self) -> int:
        return sum(map(flops, self.again.operations)) * self.link.writer.trips

    def why_not(self, may_repeat: MayRepeat) -> str | None:
        """Why the loops stay as they are; None where that holds less."""
        writer, reader = self.link.writer, self.link.reader
        if any(why_impure(op) for loop in (writer, reader) for op in loop.block.ops):
            return EFFECTS
        if writer.trips != reader.trips:
            return OTHER_TRIPS.format(writer=writer.trips, reader=reader.trips)
        if {one.written for one in self.readings} not in ({Affine(1, 0)}, {Affine(-1, writer.trips - 1)}):
            return OTHER_ORDER
        kept = [op for op in self.again.operations if not (may_repeat(op) or _is_free(op))]
        if kept:
            return NOT_AGAIN.format(name=name_of(kept[0]))
        if self.after_bytes >= self.before_bytes:
            return NOT_LESS.format(every=self.every, after=self.after_bytes, before=self.before_bytes)
        return None


def _is_free(op: Operation) -> bool:
    """Whether it is a constant of the body, or computed from nothing else."""
    return not op.operands and not op.regions


def chunks_of(link: Link, block: Block, every: int | None) -> Chunks | None:
    """The link in chunks; None where no stack is for this one reader. `every`: None for what holds the fewest bytes."""
    others = [one for one in links_of(block) if one.writer.op is link.writer.op and one.reader.op is not link.reader.op]
    shared = {reading.stack.index for one in others for reading in one.readings}
    dropped = tuple(stack for stack in link.stacks if stack.index in link.only_read - shared)
    if not dropped:
        return None
    again = demand(link.writer, [stack.slice for stack in dropped], ())
    trips = link.writer.trips
    if every is not None:
        return Chunks(link, dropped, again, min(every, trips))
    return min_chunks(link, dropped, again)


NEARLY = 1.02
"""A number of iterations that divides the loop's needs no loops for a rest, and is taken where it costs hardly more."""


def min_chunks(link: Link, dropped: tuple[Stack, ...], again: Demand) -> Chunks:
    """Those that hold the fewest bytes; of nearly the same, those without a rest."""
    trips, like = link.writer.trips, Chunks(link, dropped, again, 1)
    carry, slices = like.carry_bytes, like.before_bytes // trips
    held = {every: -(-trips // every) * carry + every * slices for every in range(1, trips + 1)}
    least = min(held.values())
    even = [every for every in held if trips % every == 0 and held[every] <= NEARLY * least]
    best = min(even or held, key=held.__getitem__)
    return Chunks(link, dropped, again, best)
