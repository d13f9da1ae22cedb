"""Which copies a set of marks asks for, where they go, and who reads them: the plan that `recompute-clone` carries out.

The copies of a segment form a unit, in front of its first reader. Two things make it more than one:

- A segment's output that is recomputed too is needed before the segment's own backward pass, for the copies of the
  segments after it. To hold the whole inside from then on would save nothing. So the outputs come first, on a *spine*
  whose inside is not held, and the inside is copied a second time when the segment's own gradient arrives.
- A segment whose readers come in several arrivals has a unit for each (`analysis/copies/needs.py`).

Source of the two copies: T. Chen et al., "Training deep nets with sublinear memory cost", 2016.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from xdsl.ir import Operation, SSAValue

from ...rules.flops import flops
from ..order import read_values
from ..step import Step
from .copying import DEFAULT, Copying
from .demands import Demand, demands
from .gates import gates_for, hold_back
from .savings import freed_bytes, pinned_bytes
from .stages import Stage, in_turn, outside_values, split
from .units import FROM_CONSTANTS, NO_GATE, NOT_READ, Kept, Unit, gradient_readers
from .wanted import Wanted, outputs_of, possible


@dataclass(frozen=True)
class Plan:
    """Units in the order in which they are put into the backward pass, and where marks have no effect: each segment
    once, at the first place that says why."""

    units: tuple[Unit, ...]
    kept: tuple[Kept, ...]


def plan_copies(step: Step, wanted: Wanted, how: Copying = DEFAULT) -> Plan:
    """Plan the copies of what is wanted."""
    gated, kept = _without_ungated(step, possible(step, wanted, how.permission))
    planner = _Planner(step, gated, how.chain)
    planner.run(how.copies)
    left = dict[str, Kept]()
    for one in (*kept, *planner.kept):
        left.setdefault(one.segment, one)
    copied = {wanted.segments[op] for unit in planner.units for op in unit.originals}
    for op, segment in wanted.segments.items():
        if segment not in copied and any(result in wanted.values for result in op.results):
            left.setdefault(segment, Kept(segment, op, NOT_READ))
    return Plan(tuple(planner.units), tuple(left.values()))


def _without_ungated(step: Step, wanted: Wanted) -> tuple[Wanted, list[Kept]]:
    """Leave out what is read before any gradient has arrived: nothing could hold its copies back."""
    values, kept = set(wanted.values), list[Kept]()
    readers = dict[str, set[Operation]]()
    for value in wanted.values:
        readers.setdefault(wanted.segment_of(value), set()).update(gradient_readers(step, value))
    position = step.phases.order.position
    for segment in sorted(readers):
        waiting = sorted(readers[segment], key=position.__getitem__)
        while waiting and not gates_for(step, _read(wanted, segment, waiting[0]), waiting, position[waiting[0]]):
            reader = waiting.pop(0)
            values.difference_update(_read(wanted, segment, reader))
            kept.append(Kept(segment, reader, NO_GATE))
    return Wanted(wanted.segments, frozenset(values)), kept


def _read(wanted: Wanted, segment: str, reader: Operation) -> list[SSAValue]:
    return [value for value in read_values(reader) if value in wanted.values and wanted.segment_of(value) == segment]


@dataclass
class _Planner:
    """Walks through the backward pass once. `held`: values whose copy exists, for everybody who reads it later."""

    step: Step
    wanted: Wanted
    chain: bool
    units: list[Unit] = field(default_factory=list[Unit])
    kept: list[Kept] = field(default_factory=list[Kept])
    held: set[SSAValue] = field(default_factory=set[SSAValue])
    made: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def run(self, copies: int) -> None:
        outputs = outputs_of(self.step, self.wanted)
        for demand in demands(self.step, self.wanted, outputs, copies):
            if demand.reader is not None:
                self._outputs_for(demand, demand.reader, outputs)
            else:
                self._unit(demand, outputs)

    def _outputs_for(self, demand: Demand, reader: Operation, outputs: Collection[SSAValue]) -> None:
        read = [value for value in read_values(reader) if value in outputs and value not in self.held]
        if not read:
            return
        gates = gates_for(self.step, read, [reader], demand.position, self.chain)
        if gates:
            self._spine(demand, read, outputs, gates)
        else:
            self.kept.append(Kept(demand.segment, reader, NO_GATE))

    def _unit(self, demand: Demand, outputs: Collection[SSAValue]) -> None:
        """Copies of a segment's inside, after the outputs of other segments that they read."""
        self._leave_out_late(demand.operations, demand.position)
        originals = [op for op in demand.operations if not self._is_held(op)]
        made = {result for op in originals for result in op.results}
        inputs = outside_values(self.step, originals)
        if not inputs and originals:
            self.kept.append(Kept(demand.segment, originals[0], FROM_CONSTANTS))
        elif originals:
            served = self._recomputed(originals)
            outside = set(inputs)
            reading = [op for op in originals if not outside.isdisjoint(read_values(op))]
            gates = self._gates(demand, served, self._recomputed(reading))
            if not gates:
                self.kept.append(Kept(demand.segment, self.step.phases.order.operations[demand.position], NO_GATE))
                return
            self._spine(demand, [value for value in inputs if value not in made], outputs, gates)
            self._add(demand, served, originals, gates)

    def _gates(self, demand: Demand, served: Sequence[SSAValue], released: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """Gates that come after what the first reader reads, and hold back all that is `released` by the inputs."""
        insertion = self.step.phases.order.operations[demand.position]
        readers = {insertion, *(reader for value in served for reader in gradient_readers(self.step, value))}
        first = [value for value in served if insertion in self.step.phases.order.readers(value)] or served
        gates = gates_for(self.step, first, readers, demand.position, self.chain)
        if not gates or hold_back(self.step, gates, released):
            return gates
        return gates_for(self.step, [*first, *released], readers, demand.position, self.chain)

    def _spine(
        self, demand: Demand, values: Iterable[SSAValue], outputs: Collection[SSAValue], gates: tuple[SSAValue, ...]
    ) -> None:
        """Copies of outputs that are read now, and of every output on the way to them; their inside is not held."""
        values = list(values)
        self._leave_out_late(self._needed_for(values), demand.position)
        originals = self._needed_for(values)
        if originals and outside_values(self.step, originals):
            served = [value for value in self._recomputed(originals) if value in outputs]
            self._add(demand, served, originals, gates)

    def _needed_for(self, values: Iterable[SSAValue]) -> list[Operation]:
        found, stack = set[Operation](), list(values)
        while stack:
            value = stack.pop()
            if value in self.wanted.values and value not in self.held and (op := value.owner) not in found:
                assert isinstance(op, Operation), "only results of operations are recomputed"
                found.add(op)
                stack.extend(read_values(op))
        return sorted(found, key=self.step.phases.order.position.__getitem__)

    def _leave_out_late(self, operations: Iterable[Operation], position: int) -> None:
        """What was not copied for an earlier reader, for want of a gate, is not copied at all: it is held for that
        reader anyway, and a copy from here on would come too late for it."""
        late = {
            value
            for value in self._recomputed(operations)
            if value not in self.held
            and any(self.step.phases.order.position[one] < position for one in gradient_readers(self.step, value))
        }
        if late:
            self.wanted = Wanted(self.wanted.segments, self.wanted.values - late)

    def _is_held(self, op: Operation) -> bool:
        return all(value in self.held for value in op.results if value in self.wanted.values)

    def _recomputed(self, originals: Iterable[Operation]) -> list[SSAValue]:
        return [value for op in originals for value in op.results if value in self.wanted.values]

    def _add(
        self, demand: Demand, served: Sequence[SSAValue], originals: Sequence[Operation], gates: tuple[SSAValue, ...]
    ) -> None:
        step = self.step
        inputs = outside_values(step, originals)
        freed = freed_bytes(step, served, inputs, demand.position)
        for op in originals:
            self.made[op] = self.made.get(op, 0) + 1
        self.held.update(served)
        stages = self._stages(originals, served, freed)
        self.units.append(
            Unit(
                segment=demand.segment,
                stages=stages,
                served=tuple(served),
                numbers=tuple(self.made[op] for stage in stages for op in stage.originals),
                insertion=step.phases.order.operations[demand.position],
                gates=gates,
                freed_bytes=freed,
                pinned_bytes=pinned_bytes(step, inputs, demand.position),
                extra_flops=sum(flops(op) for op in originals),
            )
        )

    def _stages(self, originals: Sequence[Operation], served: Sequence[SSAValue], freed: int) -> tuple[Stage, ...]:
        """Copies of several segments run segment by segment, in the order of the forward pass."""
        groups = [tuple(group) for _, group in groupby(originals, key=self.wanted.segments.__getitem__)]
        return split(self.step, originals, freed) if len(groups) == 1 else in_turn(self.step, groups, set(served))
