"""Rewrite two loops that share stacks: instead of the stacks, save carries in slots (binomial checkpointing).

A fixed number of carries is saved in slots. The slots are refilled while the later loop runs backwards:

    while n < 8 { stack %h; %h1 = f(%h, n) }          run iterations, and fill the first slots in between
    while m < 8 { read 7 - m; … }                ->   while m < 8 { %h = slot; run, and fill slots; %h = f(…); … }

Constant tables list the slots and the numbers of iterations to run (`planning/binomial.py`). The later loop begins with
the carry of the last iteration, which has a separate slot and is not recomputed. No rule of the proof covers this
rewrite.

The code size does not depend on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.ir import SSAValue

from ...analysis.copies.loop_chunks import Slots, needed_part
from ...dialects.stablehlo.checks import element_of, shape_of
from ...planning.binomial import Advance, BackwardStep, Reversal, reversal
from ..plans.apply_plan import FreeNumbers
from .carries import Replaced
from .iterations import (
    CloneOperation,
    IterationRange,
    Iterations,
    OriginalCounter,
    ValueMap,
    clone_as_copy,
    clone_beside_original,
    clone_in_place_of_original,
)
from .loop_builder import Builder, builder_before
from .loop_replacement import replace_loop, used_results


def save_in_slots(slots: Slots, numbers: FreeNumbers, replaced: Replaced) -> int:
    """Rewrite both loops to use slots. Return the number of copies."""
    schedule = reversal(slots.pair.writer.trips, slots.slots)
    filled = _ForwardInSlots(slots, schedule, numbers).replace(replaced)
    _BackwardInSlots(slots, schedule, numbers).replace(filled, replaced)
    return 2 * len(slots.recomputed_part.operations)


@dataclass(frozen=True)
class _SlotState:
    """The carries at the start of iteration `position`, and the slots: one stack for each saved carry."""

    carries: Sequence[SSAValue]
    stacks: Sequence[SSAValue]
    position: SSAValue


@dataclass(frozen=True)
class _AdvanceTables:
    """The advances of a schedule as constant tables. An advance runs a number of iterations, then fills a slot."""

    iterations: SSAValue
    slots: SSAValue

    @classmethod
    def of(cls, builder: Builder, advances: Sequence[Advance]) -> _AdvanceTables:
        iterations = builder.table([advance.iterations for advance in advances])
        return cls(iterations, builder.table([advance.slot for advance in advances]))


@dataclass(frozen=True)
class _StepTables:
    """The schedule of the backward loop as constant tables, with an entry for each of its iterations.

    Attributes:
        slots, positions: The slot from which to load carries, and the index of the iteration that begins with them.
        last_runs: The number of iterations to run after the advances.
        counts: The number of advances.
        first_advances: The index of the first advance in the table of all advances.
    """

    slots: SSAValue
    positions: SSAValue
    last_runs: SSAValue
    counts: SSAValue
    first_advances: SSAValue

    @classmethod
    def of(cls, builder: Builder, steps: Sequence[BackwardStep]) -> _StepTables:
        counts = [len(step.advances) for step in steps]
        return cls(
            slots=builder.table([step.slot for step in steps]),
            positions=builder.table([step.at for step in steps]),
            last_runs=builder.table([step.last for step in steps]),
            counts=builder.table(counts),
            first_advances=builder.table([0, *accumulate(counts)][:-1]),
        )


@dataclass(frozen=True)
class _SlotFiller:
    """An emitter of loops that run iterations and fill slots according to a table of advances.

    Attributes:
        iterations: The iterations.
        clone: A function that clones their operations.
        saved: The positions of the carries that are saved in slots.
        advances: The table.
    """

    iterations: Iterations
    clone: CloneOperation
    saved: Sequence[int]
    advances: _AdvanceTables

    def fill(self, builder: Builder, count: int | SSAValue, first: SSAValue, state: _SlotState) -> _SlotState:
        """Emit a loop that processes `count` entries of the table from entry `first` on. Return the new state."""
        carries = len(state.carries)

        def advance(builder: Builder, k: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            entry, position = builder.add_values(first, k), carried[-1]
            trips = builder.read_value(self.advances.iterations, entry)
            slot = builder.read_value(self.advances.slots, entry)
            counter = OriginalCounter(self.iterations.loop.start, 1, position)
            values = self.iterations.emit_loop(builder, IterationRange(trips, carried[:carries], counter), self.clone)
            written = _write_to_slot(builder, carried[carries:-1], [values[index] for index in self.saved], slot)
            return [*values, *written, builder.add_values(position, trips)]

        results = builder.loop(count, [*state.carries, *state.stacks, state.position], advance)
        return _SlotState(results[:carries], results[carries:-1], results[-1])


def _write_to_slot(
    builder: Builder, stacks: Sequence[SSAValue], values: Sequence[SSAValue], slot: SSAValue
) -> list[SSAValue]:
    """Emit a write of each value to the slot in its stack. Return the updated stacks."""
    slices = [builder.as_slice(value) for value in values]
    return [builder.write(stack, slice_, slot) for stack, slice_ in zip(stacks, slices, strict=True)]


class _ForwardInSlots:
    """Replaces the forward loop with loops that also fill the first slots.

    Attributes:
        needed: The part of the forward loop that is still needed without the dropped stacks.
        iterations: The iterations of this part.
        saved: The positions of the saved carries among the carries of `needed`.
    """

    def __init__(self, slots: Slots, schedule: Reversal, numbers: FreeNumbers):
        self.slots, self.schedule, self.loop = slots, schedule, slots.pair.writer
        self.clone = clone_beside_original(numbers)
        read = used_results(self.loop) - {stack.index for stack in slots.dropped}
        self.needed = needed_part(self.loop, [], read | set(slots.checkpoints))
        self.iterations = Iterations(self.loop, self.needed)
        self.saved = [self.needed.carries.index(index) for index in slots.checkpoints]

    def replace(self, replaced: Replaced) -> Sequence[SSAValue]:
        """Build the new loops, and redirect uses of the old loop's results to them. Return the slots."""
        builder = builder_before(self.loop)
        start = self.loop.start
        state = self._fill_first_slots(builder)
        before_last = sum(advance.iterations for advance in self.schedule.first)
        trips = self.loop.trips - 1 - before_last
        counter = OriginalCounter(start + before_last)
        last = self.iterations.emit_loop(builder, IterationRange(trips, state.carries, counter), self.clone)
        slot = builder.integer(self.slots.slots)
        stacks = _write_to_slot(builder, state.stacks, [last[index] for index in self.saved], slot)
        final = IterationRange(1, last, OriginalCounter(start + self.loop.trips - 1))
        carries = self.iterations.emit_loop(builder, final, clone_in_place_of_original)
        replace_loop(self.loop, dict(zip(self.needed.carries, carries, strict=True)), builder, replaced)
        return stacks

    def _fill_first_slots(self, builder: Builder) -> _SlotState:
        """Emit the first advances of the schedule, which start from the initial carries. Return the new state."""
        initial = [self.loop.op.operands[index] for index in self.needed.carries]
        stacks = [self._slots_with_first(builder, initial[index]) for index in self.saved]
        state = _SlotState(initial, stacks, builder.integer(0))
        if not (advances := self.schedule.first):
            return state
        filler = _SlotFiller(self.iterations, self.clone, self.saved, _AdvanceTables.of(builder, advances))
        return filler.fill(builder, len(advances), builder.integer(0), state)

    def _slots_with_first(self, builder: Builder, value: SSAValue) -> SSAValue:
        """Emit a stack of slots, including one for the last iteration, and write the value to the first slot."""
        empty = builder.empty(self.slots.slots + 1, shape_of(value), element_of(value))
        return builder.write(empty, builder.as_slice(value), builder.integer(0))


class _BackwardInSlots:
    """A rewriter that replaces the backward loop with a new loop. Each of its iterations reruns forward iterations from
    a slot, fills further slots, and computes one gradient.

    Attributes:
        reruns: The iterations of the forward loop that compute the dropped slices.
        needed: The part of the backward loop that is needed when other operations provide the slices of the dropped
            stacks.
        gradients: The iterations of this part.
        tables: The schedule of the new loop, as constants before it.
        has_advances: Whether the schedule has advances.
        filler: Runs the advances of the schedule.
    """

    def __init__(self, slots: Slots, schedule: Reversal, numbers: FreeNumbers):
        self.slots, self.writer, self.loop = slots, slots.pair.writer, slots.pair.reader
        self.clone = clone_as_copy(numbers)
        self.reruns = Iterations(self.writer, slots.recomputed_part)
        slices = {reading.op.result for reading in slots.dropped_reads}
        self.needed = needed_part(self.loop, [], used_results(self.loop), slices)
        self.gradients = Iterations(self.loop, self.needed)
        # The loop begins with the carry of the last iteration, which is in the last slot.
        steps = [BackwardStep(slots.slots, self.loop.trips - 1, (), 0), *schedule.steps[1:]]
        self.builder = builder_before(self.loop)
        self.tables = _StepTables.of(self.builder, steps)
        advances = [advance for step in steps for advance in step.advances]
        self.has_advances = bool(advances)
        tables = _AdvanceTables.of(self.builder, advances or [Advance(0, 0)])
        self.filler = _SlotFiller(self.reruns, self.clone, range(len(slots.checkpoints)), tables)

    def replace(self, filled: Sequence[SSAValue], replaced: Replaced) -> None:
        """Build the new loop, and redirect uses of the old loop's results to it.

        `filled`: the slots after the forward loop.
        """
        initial = [self.loop.op.operands[index] for index in self.needed.carries]
        results = self.builder.loop(self.loop.trips, [*initial, *filled], self._step)[: len(initial)]
        replace_loop(self.loop, dict(zip(self.needed.carries, results, strict=True)), self.builder, replaced)

    def _step(self, builder: Builder, m: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emit iteration `m` of the new loop."""
        carries, stacks = carried[: len(self.needed.carries)], carried[len(self.needed.carries) :]
        slot, last_run = builder.read_value(self.tables.slots, m), builder.read_value(self.tables.last_runs, m)
        loaded = [builder.read_value(stack, slot) for stack in stacks]
        state = _SlotState(loaded, stacks, builder.read_value(self.tables.positions, m))
        if self.has_advances:
            count, first = builder.read_value(self.tables.counts, m), builder.read_value(self.tables.first_advances, m)
            state = self.filler.fill(builder, count, first, state)
        slices = self._rerun(builder, state, last_run)
        return [*self._gradient(builder, m, carries, slices), *state.stacks]

    def _rerun(self, builder: Builder, state: _SlotState, trips: SSAValue) -> ValueMap:
        """Emit `trips` forward iterations, then the iteration whose slices the gradient reads. Return the values of the
        last iteration."""
        counter = OriginalCounter(self.writer.start, 1, state.position)
        carries = self.reruns.emit_loop(builder, IterationRange(trips, state.carries, counter), self.clone)
        last_counter = builder.add_constant(builder.add_values(state.position, trips), self.writer.start)
        values = self.reruns.map_inputs(last_counter, carries)
        self.reruns.emit_operations(builder, values, self.clone)
        return values

    def _gradient(
        self, builder: Builder, m: SSAValue, carries: Sequence[SSAValue], forward: ValueMap
    ) -> Sequence[SSAValue]:
        """Emit backward iteration `m`. Return its carries. `forward`: the recomputed forward values."""
        mapping = self.gradients.map_inputs(builder.add_constant(m, self.loop.start), carries)
        for reading in self.slots.dropped_reads:
            mapping[reading.op.result] = forward.get(reading.stack.slice, reading.stack.slice)
        self.gradients.emit_operations(builder, mapping, clone_in_place_of_original)
        return self.gradients.yielded_carries(mapping)
