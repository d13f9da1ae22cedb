"""Rewrite of two loops that share stacks so that carries are saved in slots instead (binomial checkpointing).

A fixed number of carries is saved, and slots are refilled while the later loop runs backwards:

    while n < 8 { stack %h; %h1 = f(%h, n) }          fill the first slots, a few iterations between two of them
    while m < 8 { read 7 - m; … }                ->   while m < 8 { %h = slot; run, and fill slots; %h = f(…); … }

Slots and numbers of iterations are in tables (`planning/binomial.py`). The carry of the last iteration, with which the
later loop begins, has a slot of its own and is not recomputed. No rule of the proof covers this rewrite.

The code size does not depend on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import SSAValue

from ...analysis.copies.loop_chunks import Slots, needed_part
from ...dialects.stablehlo.checks import element_of, shape_of
from ...planning.binomial import Advance, Backwards, Reversal, reversal
from ..plans.apply_plan import FreeNumbers
from .carries import Replaced
from .loop_builder import (
    Builder,
    IterationNumber,
    Iterations,
    Repeat,
    clone_as_copy,
    clone_duplicate,
    clone_once,
)
from .loop_replacement import builder_before, replace_loop


def save_in_slots(slots: Slots, numbers: FreeNumbers, replaced: Replaced) -> int:
    """Rewrite both loops with slots; return the number of copies."""
    schedule = reversal(slots.link.writer.trips, slots.slots)
    stacks = _forward_in_slots(slots, schedule, numbers, replaced)
    _backward_in_slots(slots, schedule, stacks, numbers, replaced)
    return 2 * len(slots.recomputed_part.operations)


@dataclass(frozen=True)
class _Filling:
    """Emits loops that run iterations and fill slots as two tables prescribe.

    Attributes:
        run: The iterations.
        repeat: How their operations are cloned.
        kept: The indices of the carries that the slots hold.
        iterations, target_slots: For each entry of the tables, the number of iterations to run, and the slot to fill
            after them.
    """

    run: Iterations
    repeat: Repeat
    kept: Sequence[int]
    iterations: SSAValue
    target_slots: SSAValue

    def fill(self, builder: Builder, count: int | SSAValue, first: SSAValue, state: _SlotState) -> _SlotState:
        """Process `count` entries of the tables, beginning at entry `first`; return the state that is reached."""
        carries = len(state.carries)

        def advance(builder: Builder, k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            entry, position = builder.add_up(first, k), carried[-1]
            iterations, slot = builder.read_value(self.iterations, entry), builder.read_value(self.target_slots, entry)
            number = IterationNumber(self.run.loop.start, 1, position)
            values = self.run.run(builder, iterations, carried[:carries], number, self.repeat)
            parts = [builder.as_slice(values[index]) for index in self.kept]
            stacks = [builder.write(stack, part, slot) for stack, part in zip(carried[carries:-1], parts, strict=True)]
            return [*values, *stacks, builder.add_up(position, iterations)]

        results = builder.loop(count, [*state.carries, *state.stacks, state.position], advance)
        return _SlotState(results[:carries], results[carries:-1], results[-1])


@dataclass(frozen=True)
class _SlotState:
    """The carries at the beginning of iteration `position`, and the slots."""

    carries: Sequence[SSAValue]
    stacks: Sequence[SSAValue]
    position: SSAValue


def _forward_in_slots(slots: Slots, schedule: Reversal, numbers: FreeNumbers, replaced: Replaced) -> Sequence[SSAValue]:
    """Build the forward loop, which also fills the first slots; return the slots."""
    loop, dropped = slots.link.writer, {stack.index for stack in slots.dropped}
    read = {result.index for result in loop.op.results if any(result.uses)} - dropped
    needs = needed_part(loop, [], read | set(slots.checkpoints))
    kept = [needs.carries.index(index) for index in slots.checkpoints]
    run, builder = Iterations(loop, needs), builder_before(loop)
    values = [loop.op.operands[index] for index in needs.carries]
    stacks = [_with_first(builder, values[index], slots.slots) for index in kept]
    state, covered = _SlotState(values, stacks, builder.number(0)), 0
    if schedule.first:
        tables = [builder.table(column) for column in _columns(schedule.first)]
        filling = _Filling(run, clone_duplicate(numbers), kept, *tables)
        state = filling.fill(builder, len(schedule.first), builder.number(0), state)
        covered = sum(advance.iterations for advance in schedule.first)
    last = run.run(
        builder,
        loop.trips - 1 - covered,
        state.carries,
        IterationNumber(loop.start + covered),
        clone_duplicate(numbers),
    )
    work, parts = builder.number(slots.slots), [builder.as_slice(last[index]) for index in kept]
    stacks = [builder.write(stack, part, work) for stack, part in zip(state.stacks, parts, strict=True)]
    values = run.run(builder, 1, last, IterationNumber(loop.start + loop.trips - 1), clone_once)
    replace_loop(loop, dict(zip(needs.carries, values, strict=True)), builder, replaced)
    return stacks


def _with_first(builder: Builder, value: SSAValue, slots: int) -> SSAValue:
    """Return slots, with the value in the first one, plus a slot for the carry of the last iteration."""
    empty = builder.empty(slots + 1, shape_of(value), element_of(value))
    return builder.write(empty, builder.as_slice(value), builder.number(0))


def _columns(advances: Sequence[Advance]) -> tuple[list[int], list[int]]:
    return [advance.iterations for advance in advances], [advance.slot for advance in advances]


def _backward_in_slots(
    slots: Slots, schedule: Reversal, stacks: Sequence[SSAValue], numbers: FreeNumbers, replaced: Replaced
) -> None:
    """Build the backward loop: each iteration runs from a slot, fills further slots, and computes one gradient."""
    writer, loop = slots.link.writer, slots.link.reader
    steps = [Backwards(slots.slots, loop.trips - 1, (), 0), *schedule.steps[1:]]
    read = {result.index for result in loop.op.results if any(result.uses)}
    needs = needed_part(loop, [], read, {reading.op.result for reading in slots.dropped_reads})
    run, gradient, builder = Iterations(writer, slots.recomputed_part), Iterations(loop, needs), builder_before(loop)
    entries = [advance for step in steps for advance in step.advances]
    first = [0, *accumulate(len(step.advances) for step in steps)][:-1]
    start_slots, positions, lasts, counts, first_entries = (
        builder.table(column)
        for column in (
            [step.slot for step in steps],
            [step.at for step in steps],
            [step.last for step in steps],
            [len(step.advances) for step in steps],
            first,
        )
    )
    iterations, target_slots = (builder.table(column) for column in _columns(entries or [Advance(0, 0)]))
    all_carries = range(len(slots.checkpoints))
    filling = _Filling(run, clone_as_copy(numbers), all_carries, iterations, target_slots)

    def step(builder: Builder, m: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        values, stacks = carried[: len(needs.carries)], carried[len(needs.carries) :]
        slot, iterations_to_run = builder.read_value(start_slots, m), builder.read_value(lasts, m)
        state = _SlotState(
            [builder.read_value(stack, slot) for stack in stacks], stacks, builder.read_value(positions, m)
        )
        if entries:
            state = filling.fill(builder, builder.read_value(counts, m), builder.read_value(first_entries, m), state)
        carries = run.run(
            builder,
            iterations_to_run,
            state.carries,
            IterationNumber(writer.start, 1, state.position),
            clone_as_copy(numbers),
        )
        counter = builder.plus(builder.add_up(state.position, iterations_to_run), writer.start)
        values_of_writer = run.mapping(builder, counter, carries)
        run.write(builder, values_of_writer, clone_as_copy(numbers))
        mapping = gradient.mapping(builder, builder.plus(m, loop.start), values)
        mapping |= {
            reading.op.result: values_of_writer.get(reading.stack.slice, reading.stack.slice)
            for reading in slots.dropped_reads
        }
        gradient.write(builder, mapping, clone_once)
        return [*gradient.following(mapping), *state.stacks]

    initial = [loop.op.operands[index] for index in needs.carries]
    values = builder.loop(loop.trips, [*initial, *stacks], step)[: len(initial)]
    replace_loop(loop, dict(zip(needs.carries, values, strict=True)), builder, replaced)
