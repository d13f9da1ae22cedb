"""Carry binomial checkpoints out: slots for carries, which are filled anew while the later loop runs backwards.

    while n < 8 { stack %h; %h1 = f(%h, n) }          fill the first slots, a few iterations between two of them
    while m < 8 { read 7 - m; … }                ->   while m < 8 { %h = slot; run, and fill slots; %h = f(…); … }

Which slot, and how many iterations, is in tables (`planning/binomial.py`), so that the code does not grow with the
number of iterations. The carry of the last iteration, with which the later loop begins, has a slot of its own: nobody
computes it twice. No rule of the proof knows all this.
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
from .iterations import Iterations, Number, Repeat, again, as_it_is, once_more
from .replace import in_front_of, stand_for


def in_slots(slots: Slots, numbers: Numbers, replaced: Replaced) -> int:
    """How many copies are made. Nobody reads either loop then; `replaced` is added to."""
    schedule = reversal(slots.link.writer.trips, slots.slots)
    stacks = _forward(slots, schedule, numbers, replaced)
    _backward(slots, schedule, stacks, numbers, replaced)
    return 2 * len(slots.again.operations)


@dataclass(frozen=True)
class _Filling:
    """Runs iterations, and fills a slot after some of them: how many, and which, is in tables. `kept`: which of the
    carries slots are for."""

    run: Iterations
    repeat: Repeat
    kept: Sequence[int]
    iterations: SSAValue
    into: SSAValue

    def fill(self, place: Builder, count: int | SSAValue, first: SSAValue, reached: _Reached) -> _Reached:
        """`count` entries of the tables, from the first of them on."""
        carries = len(reached.carries)

        def one(place: Builder, k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            entry, position = place.add_up(first, k), carried[-1]
            iterations, slot = place.read_value(self.iterations, entry), place.read_value(self.into, entry)
            number = Number(self.run.loop.start, 1, position)
            values = self.run.run(place, iterations, carried[:carries], number, self.repeat)
            parts = [place.as_slice(values[index]) for index in self.kept]
            stacks = [place.write(stack, part, slot) for stack, part in zip(carried[carries:-1], parts, strict=True)]
            return [*values, *stacks, place.add_up(position, iterations)]

        results = place.loop(count, [*reached.carries, *reached.stacks, reached.position], one)
        return _Reached(results[:carries], results[carries:-1], results[-1])


@dataclass(frozen=True)
class _Reached:
    """The carries when iteration `position` begins, and the slots."""

    carries: Sequence[SSAValue]
    stacks: Sequence[SSAValue]
    position: SSAValue


def _forward(slots: Slots, schedule: Reversal, numbers: Numbers, replaced: Replaced) -> Sequence[SSAValue]:
    """The loop as it was, but that it fills the first slots; these."""
    loop, gone = slots.link.writer, {stack.index for stack in slots.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - gone
    needs = demand(loop, [], read | set(slots.checkpoints))
    kept = [needs.carries.index(index) for index in slots.checkpoints]
    run, place = Iterations(loop, needs), in_front_of(loop)
    values = [loop.op.operands[index] for index in needs.carries]
    stacks = [_with_first(place, values[index], slots.slots) for index in kept]
    reached, done = _Reached(values, stacks, place.number(0)), 0
    if schedule.first:
        tables = [place.table(column) for column in _columns(schedule.first)]
        filling = _Filling(run, once_more(numbers), kept, *tables)
        reached = filling.fill(place, len(schedule.first), place.number(0), reached)
        done = sum(one.iterations for one in schedule.first)
    last = run.run(place, loop.trips - 1 - done, reached.carries, Number(loop.start + done), once_more(numbers))
    work, parts = place.number(slots.slots), [place.as_slice(last[index]) for index in kept]
    stacks = [place.write(stack, part, work) for stack, part in zip(reached.stacks, parts, strict=True)]
    values = run.run(place, 1, last, Number(loop.start + loop.trips - 1), as_it_is)
    stand_for(loop, dict(zip(needs.carries, values, strict=True)), place, replaced)
    return stacks


def _with_first(place: Builder, value: SSAValue, slots: int) -> SSAValue:
    """Slots, of which the first holds the value, and one behind them for the carry of the last iteration."""
    empty = place.empty(slots + 1, shape_of(value), element_of(value))
    return place.write(empty, place.as_slice(value), place.number(0))


def _columns(listed: Sequence[Advance]) -> tuple[list[int], list[int]]:
    return [one.iterations for one in listed], [one.slot for one in listed]


def _backward(
    slots: Slots, schedule: Reversal, stacks: Sequence[SSAValue], numbers: Numbers, replaced: Replaced
) -> None:
    writer, loop = slots.link.writer, slots.link.reader
    steps = [Backwards(slots.slots, loop.trips - 1, (), 0), *schedule.steps[1:]]
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = demand(loop, [], read, {reading.op.result for reading in slots.readings})
    run, gradient, place = Iterations(writer, slots.again), Iterations(loop, needs), in_front_of(loop)
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
    filling = _Filling(run, again(numbers), every, iterations, into)

    def step(place: Builder, m: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, stacks = carried[: len(needs.carries)], carried[len(needs.carries) :]
        slot, more = place.read_value(begin, m), place.read_value(last, m)
        reached = _Reached([place.read_value(stack, slot) for stack in stacks], stacks, place.read_value(at, m))
        if entries:
            reached = filling.fill(place, place.read_value(count, m), place.read_value(entry, m), reached)
        carries = run.run(place, more, reached.carries, Number(writer.start, 1, reached.position), again(numbers))
        counter = place.plus(place.add_up(reached.position, more), writer.start)
        made = run.mapping(place, counter, carries)
        run.write(place, made, again(numbers))
        mapping = gradient.mapping(place, place.plus(m, loop.start), values)
        mapping |= {reading.op.result: made.get(reading.stack.slice, reading.stack.slice) for reading in slots.readings}
        gradient.write(place, mapping, as_it_is)
        return [*gradient.following(mapping), *reached.stacks]

    initial = [loop.op.operands[index] for index in needs.carries]
    values = place.loop(loop.trips, [*initial, *stacks], step)[: len(initial)]
    stand_for(loop, dict(zip(needs.carries, values, strict=True)), place, replaced)
