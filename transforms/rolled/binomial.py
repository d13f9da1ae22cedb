"""Binomial checkpoints of a loop: slots for carries, which are refilled while the later loop runs backwards.

    while n < 8 { stack %h; %h1 = f(%h, n) }          fill the first slots, a few iterations between two of them
    while m < 8 { read 7 - m; … }                ->   while m < 8 { %h = slot; run, and fill slots; %h = f(…); … }

Slots and numbers of iterations are in tables (`planning/binomial.py`), so that the code size does not depend on the
number of iterations. The carry of the last iteration, with which the later loop begins, has a slot of its own and is
not recomputed. No rule of the proof covers this rewrite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import SSAValue

from ...analysis.copies.loop_chunks import Slots, demand
from ...dialects.stablehlo.checks import element_of, shape_of
from ...planning.binomial import Advance, Backwards, Reversal, reversal
from ..plans.apply_plan import Numbers
from .builder import Builder
from .carries import Replaced
from .iterations import IterationNumber, Iterations, Repeat, clone_as_copy, clone_duplicate, clone_once
from .replace import builder_before, replace_loop


def in_slots(slots: Slots, numbers: Numbers, replaced: Replaced) -> int:
    """Build both loops, redirect all uses and extend `replaced`. Returns the number of copies."""
    schedule = reversal(slots.link.writer.trips, slots.slots)
    stacks = _forward(slots, schedule, numbers, replaced)
    _backward(slots, schedule, stacks, numbers, replaced)
    return 2 * len(slots.again.operations)


@dataclass(frozen=True)
class _Filling:
    """Runs iterations and fills slots, by the tables `iterations` and `into`. `kept`: indices of the carries that the
    slots hold."""

    run: Iterations
    repeat: Repeat
    kept: Sequence[int]
    iterations: SSAValue
    into: SSAValue

    def fill(self, place: Builder, count: int | SSAValue, first: SSAValue, reached: _Reached) -> _Reached:
        """Process `count` entries of the tables, beginning at `first`."""
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
    """The carries when iteration `position` begins, and the slots."""

    carries: Sequence[SSAValue]
    stacks: Sequence[SSAValue]
    position: SSAValue


def _forward(slots: Slots, schedule: Reversal, numbers: Numbers, replaced: Replaced) -> Sequence[SSAValue]:
    """Build the forward loop, which also fills the first slots; returns the slots."""
    loop, dropped = slots.link.writer, {stack.index for stack in slots.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - dropped
    needs = demand(loop, [], read | set(slots.checkpoints))
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
    """Slots with the value in the first, and one more for the carry of the last iteration."""
    empty = place.empty(slots + 1, shape_of(value), element_of(value))
    return place.write(empty, place.as_slice(value), place.number(0))


def _columns(advances: Sequence[Advance]) -> tuple[list[int], list[int]]:
    return [advance.iterations for advance in advances], [advance.slot for advance in advances]


def _backward(
    slots: Slots, schedule: Reversal, stacks: Sequence[SSAValue], numbers: Numbers, replaced: Replaced
) -> None:
    writer, loop = slots.link.writer, slots.link.reader
    steps = [Backwards(slots.slots, loop.trips - 1, (), 0), *schedule.steps[1:]]
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = demand(loop, [], read, {reading.op.result for reading in slots.readings})
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
