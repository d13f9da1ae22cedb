"""Rewrites of two loops that share stacks so that carries are saved instead: per chunk of iterations, or in slots.

With chunks of k iterations, both loops become loops over chunks:

    while n < 8 { stack %h; %h1 = f(%h, n) }          while q < 4 { stack %h; while r < 2 { %h1 = f(%h, 2 * q + r) } }
    while m < 8 { read 7 - m; … }                ->   while p < 4 { %h = read 3 - p; while r < 2 { stack %h; %h1 = … }
                                                                    while j < 2 { read 1 - j; … } }

If k does not divide the number of iterations, the remainder is a last chunk, whose carries are in no stack.

With slots (binomial checkpointing), a fixed number of carries is saved, and slots are refilled while the later loop
runs backwards:

    while n < 8 { stack %h; %h1 = f(%h, n) }          fill the first slots, a few iterations between two of them
    while m < 8 { read 7 - m; … }                ->   while m < 8 { %h = slot; run, and fill slots; %h = f(…); … }

Slots and numbers of iterations are in tables (`planning/binomial.py`). The carry of the last iteration, with which the
later loop begins, has a slot of its own and is not recomputed. No rule of the proof covers this rewrite.

In both cases the code size does not depend on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint

from ...analysis.copies.loop_chunks import Chunks, SavedCarries, Slots, needed_part
from ...analysis.step.counted_loops import CountedLoop
from ...dialects.stablehlo.checks import element_of, shape_of
from ...planning.binomial import Advance, Backwards, Reversal, reversal
from ..plans.apply_plan import Numbers
from .carries import Replaced
from .loop_builder import (
    Builder,
    IterationNumber,
    Iterations,
    Repeat,
    Rerun,
    clone_as_copy,
    clone_duplicate,
    clone_once,
)


def builder_before(loop: CountedLoop) -> Builder:
    """Return a builder that inserts before the loop."""
    return Builder(InsertPoint.before(loop.op), loop.op.location, loop.block.args[loop.counter].type)


def replace_loop(loop: CountedLoop, values: dict[int, SSAValue], place: Builder, replaced: Replaced) -> None:
    """Redirect uses of the loop's results.

    Args:
        loop: The loop.
        values: The new values, by the index of the result. Other results are the constant at which the counter ends, or
            the initial value of a carry that the loop does not change.
        place: The builder for the constant.
        replaced: Extended by the replacements.
    """
    for result in loop.op.results:
        value = values.get(result.index)
        if value is None and loop.is_invariant(result.index):
            value = loop.op.operands[result.index]
        elif value is None and result.index == loop.counter and any(result.uses):
            value = place.number(loop.start + loop.trips)
        if value is not None:
            value.name_hint = value.name_hint or result.name_hint
            result.replace_all_uses_with(value)
            replaced[result] = value


def erase_loop(loop: CountedLoop) -> None:
    """Erase a loop and the operations that still read it, whose results are not needed."""
    _erase_readers(loop.op.results)
    loop.op.detach()
    loop.op.erase()


def _erase_readers(values: Sequence[SSAValue]) -> None:
    for value in values:
        for use in list(value.uses):
            _erase_readers(use.operation.results)
            use.operation.detach()
            use.operation.erase()


def in_slots(slots: Slots, numbers: Numbers, replaced: Replaced) -> int:
    """Rewrite both loops with slots; return the number of copies."""
    schedule = reversal(slots.link.writer.trips, slots.slots)
    stacks = _forward_in_slots(slots, schedule, numbers, replaced)
    _backward_in_slots(slots, schedule, stacks, numbers, replaced)
    return 2 * len(slots.again.operations)


@dataclass(frozen=True)
class _Filling:
    """Emits loops that run iterations and fill slots as two tables prescribe.

    Attributes:
        run: The iterations.
        repeat: How their operations are cloned.
        kept: The indices of the carries that the slots hold.
        iterations, into: For each entry of the tables, the number of iterations to run, and the slot to fill after
            them.
    """

    run: Iterations
    repeat: Repeat
    kept: Sequence[int]
    iterations: SSAValue
    into: SSAValue

    def fill(self, place: Builder, count: int | SSAValue, first: SSAValue, reached: _Reached) -> _Reached:
        """Process `count` entries of the tables, beginning at entry `first`; return the state that is reached."""
        carries = len(reached.carries)

        def advance(place: Builder, k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            entry, position = place.add_up(first, k), carried[-1]
            iterations, slot = place.read_value(self.iterations, entry), place.read_value(self.into, entry)
            number = IterationNumber(self.run.loop.start, 1, position)
            values = self.run.run(place, iterations, carried[:carries], number, self.repeat)
            parts = [place.as_slice(values[index]) for index in self.kept]
            stacks = [place.write(stack, part, slot) for stack, part in zip(carried[carries:-1], parts, strict=True)]
            return [*values, *stacks, place.add_up(position, iterations)]

        results = place.loop(count, [*reached.carries, *reached.stacks, reached.position], advance)
        return _Reached(results[:carries], results[carries:-1], results[-1])


@dataclass(frozen=True)
class _Reached:
    """The carries at the beginning of iteration `position`, and the slots."""

    carries: Sequence[SSAValue]
    stacks: Sequence[SSAValue]
    position: SSAValue


def _forward_in_slots(slots: Slots, schedule: Reversal, numbers: Numbers, replaced: Replaced) -> Sequence[SSAValue]:
    """Build the forward loop, which also fills the first slots; return the slots."""
    loop, dropped = slots.link.writer, {stack.index for stack in slots.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - dropped
    needs = needed_part(loop, [], read | set(slots.checkpoints))
    kept = [needs.carries.index(index) for index in slots.checkpoints]
    run, place = Iterations(loop, needs), builder_before(loop)
    values = [loop.op.operands[index] for index in needs.carries]
    stacks = [_with_first(place, values[index], slots.slots) for index in kept]
    reached, covered = _Reached(values, stacks, place.number(0)), 0
    if schedule.first:
        tables = [place.table(column) for column in _columns(schedule.first)]
        filling = _Filling(run, clone_duplicate(numbers), kept, *tables)
        reached = filling.fill(place, len(schedule.first), place.number(0), reached)
        covered = sum(advance.iterations for advance in schedule.first)
    last = run.run(
        place,
        loop.trips - 1 - covered,
        reached.carries,
        IterationNumber(loop.start + covered),
        clone_duplicate(numbers),
    )
    work, parts = place.number(slots.slots), [place.as_slice(last[index]) for index in kept]
    stacks = [place.write(stack, part, work) for stack, part in zip(reached.stacks, parts, strict=True)]
    values = run.run(place, 1, last, IterationNumber(loop.start + loop.trips - 1), clone_once)
    replace_loop(loop, dict(zip(needs.carries, values, strict=True)), place, replaced)
    return stacks


def _with_first(place: Builder, value: SSAValue, slots: int) -> SSAValue:
    """Return slots, with the value in the first one, plus a slot for the carry of the last iteration."""
    empty = place.empty(slots + 1, shape_of(value), element_of(value))
    return place.write(empty, place.as_slice(value), place.number(0))


def _columns(advances: Sequence[Advance]) -> tuple[list[int], list[int]]:
    return [advance.iterations for advance in advances], [advance.slot for advance in advances]


def _backward_in_slots(
    slots: Slots, schedule: Reversal, stacks: Sequence[SSAValue], numbers: Numbers, replaced: Replaced
) -> None:
    writer, loop = slots.link.writer, slots.link.reader
    steps = [Backwards(slots.slots, loop.trips - 1, (), 0), *schedule.steps[1:]]
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = needed_part(loop, [], read, {reading.op.result for reading in slots.readings})
    run, gradient, place = Iterations(writer, slots.again), Iterations(loop, needs), builder_before(loop)
    entries = [advance for step in steps for advance in step.advances]
    first = [0, *accumulate(len(step.advances) for step in steps)][:-1]
    begin, at, last, count, entry = (
        place.table(column)
        for column in (
            [step.slot for step in steps],
            [step.at for step in steps],
            [step.last for step in steps],
            [len(step.advances) for step in steps],
            first,
        )
    )
    iterations, into = (place.table(column) for column in _columns(entries or [Advance(0, 0)]))
    every = range(len(slots.checkpoints))
    filling = _Filling(run, clone_as_copy(numbers), every, iterations, into)

    def step(place: Builder, m: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, stacks = carried[: len(needs.carries)], carried[len(needs.carries) :]
        slot, more = place.read_value(begin, m), place.read_value(last, m)
        reached = _Reached([place.read_value(stack, slot) for stack in stacks], stacks, place.read_value(at, m))
        if entries:
            reached = filling.fill(place, place.read_value(count, m), place.read_value(entry, m), reached)
        carries = run.run(
            place, more, reached.carries, IterationNumber(writer.start, 1, reached.position), clone_as_copy(numbers)
        )
        counter = place.plus(place.add_up(reached.position, more), writer.start)
        values_of_writer = run.mapping(place, counter, carries)
        run.write(place, values_of_writer, clone_as_copy(numbers))
        mapping = gradient.mapping(place, place.plus(m, loop.start), values)
        mapping |= {
            reading.op.result: values_of_writer.get(reading.stack.slice, reading.stack.slice)
            for reading in slots.readings
        }
        gradient.write(place, mapping, clone_once)
        return [*gradient.following(mapping), *reached.stacks]

    initial = [loop.op.operands[index] for index in needs.carries]
    values = place.loop(loop.trips, [*initial, *stacks], step)[: len(initial)]
    replace_loop(loop, dict(zip(needs.carries, values, strict=True)), place, replaced)


def in_chunks(chunks: Chunks, numbers: Numbers, replaced: Replaced) -> int:
    """Rewrite both loops with chunks; return the number of copies."""
    kept = _forward_in_chunks(chunks, numbers, replaced)
    _backward_in_chunks(chunks, numbers, kept, replaced)
    return len(chunks.again.operations)


@dataclass(frozen=True)
class _Checkpoints:
    """The carries at the start of each chunk: stacks for complete chunks, plain values for the last incomplete one."""

    stacks: Sequence[SSAValue]
    last: Sequence[SSAValue]


def _forward_in_chunks(chunks: Chunks, numbers: Numbers, replaced: Replaced) -> _Checkpoints:
    loop, gone = chunks.link.writer, {stack.index for stack in chunks.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - gone
    needs = needed_part(loop, [], read | set(chunks.checkpoints))
    iterations, place = Iterations(loop, needs), builder_before(loop)
    initial = [loop.op.operands[index] for index in needs.carries]
    kept = [needs.carries.index(index) for index in chunks.checkpoints]
    arguments = [loop.block.args[index] for index in chunks.checkpoints]
    empty = [place.empty(chunks.whole, shape_of(value), element_of(value)) for value in arguments]

    def chunk(place: Builder, q: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, stacks = carried[: len(initial)], carried[len(initial) :]
        slices = [place.as_slice(values[index]) for index in kept]
        written = [place.write(stack, part, q) for stack, part in zip(stacks, slices, strict=True)]
        number = IterationNumber(loop.start, chunks.every, q)
        return [*iterations.run(place, chunks.every, values, number, clone_once), *written]

    results = place.loop(chunks.whole, [*initial, *empty], chunk)
    values, stacks = results[: len(initial)], results[len(initial) :]
    last = [values[index] for index in kept]
    if chunks.remainder:
        number = IterationNumber(loop.start + chunks.whole * chunks.every)
        values = iterations.run(place, chunks.remainder, values, number, clone_duplicate(numbers))
    replace_loop(loop, dict(zip(needs.carries, values, strict=True)), place, replaced)
    return _Checkpoints(stacks, last)


def _backward_in_chunks(chunks: Chunks, numbers: Numbers, kept: _Checkpoints, replaced: Replaced) -> None:
    loop, readings = chunks.link.reader, chunks.readings
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = needed_part(loop, [], read, {reading.op.result for reading in readings})
    place, whole, every, remainder = builder_before(loop), chunks.whole, chunks.every, chunks.remainder
    writer = chunks.link.writer
    rerun, iterations = Rerun(writer, chunks.again, chunks.dropped), Iterations(loop, needs)
    slices = [[reading.op.result for reading in readings if reading.stack is stack] for stack in chunks.dropped]

    def gradients(
        place: Builder,
        trips: int,
        carried: Sequence[SSAValue],
        stacks: Sequence[SSAValue],
        number: IterationNumber,
        repeat: Repeat,
    ) -> Sequence[SSAValue]:
        def slices_of(inside: Builder, j: SSAValue) -> dict[SSAValue, SSAValue]:
            local = inside.minus_from(trips - 1, j) if chunks.is_reversed else j
            return {
                value: inside.read(stack, local)
                for stack, values in zip(stacks, slices, strict=True)
                for value in values
            }

        return iterations.run(place, trips, carried, number, repeat, slices_of)

    def chunk(place: Builder, p: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        q = place.minus_from(whole - 1, p) if chunks.is_reversed else p
        begin = [place.read_value(stack, q) for stack in kept.stacks]
        stacks = rerun.run(place, every, begin, IterationNumber(writer.start, every, q), numbers)
        number = IterationNumber(loop.start + remainder * chunks.is_reversed, every, p)
        return gradients(place, every, carried, stacks, number, clone_once)

    def last_chunk(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        stacks = rerun.run(place, remainder, kept.last, IterationNumber(writer.start + whole * every), numbers)
        number = IterationNumber(loop.start if chunks.is_reversed else loop.start + whole * every)
        return gradients(place, remainder, carried, stacks, number, clone_duplicate(numbers))

    carried: Sequence[SSAValue] = [loop.op.operands[index] for index in needs.carries]
    if remainder and chunks.is_reversed:
        carried = last_chunk(carried)
    carried = place.loop(whole, carried, chunk)
    if remainder and not chunks.is_reversed:
        carried = last_chunk(carried)
    replace_loop(loop, dict(zip(needs.carries, carried, strict=True)), place, replaced)


def carry_out(held: SavedCarries, numbers: Numbers, replaced: Replaced) -> int:
    """Replace both loops according to the schedule, and return the number of copies.

    `replaced`: extended by the replacements of the loops' results.
    """
    if isinstance(held, Chunks):
        copies = in_chunks(held, numbers, replaced)
    else:
        assert isinstance(held, Slots), "chunks or slots"
        copies = in_slots(held, numbers, replaced)
    erase_loop(held.link.reader)  # First: it reads results of the writer.
    erase_loop(held.link.writer)
    return copies
