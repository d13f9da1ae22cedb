"""Which parts of a segment an executor would run long before the segment: those that need no value from before it.

The random bits of every layer depend on keys alone. An executor that goes through the program breadth first (XLA:CPU)
makes those of all layers before the first layer, and holds them; the layer's own input would have come in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..rules.kinds import is_constant
from .copies.stages import WORTH, excess_bytes, held_inside, outside_values
from .order import producers, read_values
from .phases import Phases
from .segments import find_segments
from .step import Step
from .storage import value_bytes


@dataclass(frozen=True)
class Early:
    """`operations` of a segment that could run as soon as `inputs` are there, long before its own `awaited`."""

    segment: str
    operations: tuple[Operation, ...]
    inputs: tuple[SSAValue, ...]
    awaited: tuple[SSAValue, ...]


def early_parts(phases: Phases, pattern: str = "auto") -> list[Early]:
    """The part of each segment that is worth holding back. Raises `NoSuchSegment`."""
    step = Step.of(phases)
    members = dict[str, list[Operation]]()
    for op, segment in find_segments(phases, pattern).items():
        members.setdefault(segment, []).append(op)
    turns = _turns(step, members)
    return [one for segment, operations in members.items() for one in _early(step, segment, operations, turns)]


def _turns(step: Step, members: dict[str, list[Operation]]) -> dict[Operation, int]:
    """For each forward operation how many segments, one after the other, have run when its results are there."""
    segment_of = {op: segment for segment, operations in members.items() for op in operations}
    found = dict[Operation, int]()
    for op in step.phases.order.operations:
        own = segment_of.get(op)
        before = [found.get(one, 0) - (own is not None and segment_of.get(one) == own) for one in producers(op)]
        found[op] = max(before, default=0) + (own is not None)
    return found


def _early(step: Step, segment: str, operations: list[Operation], turns: dict[Operation, int]) -> Iterator[Early]:
    inputs = outside_values(step, operations)
    last = max((_turn(value, turns) for value in inputs), default=0)
    if last == 0:
        return
    waiting = {value for value in inputs if _turn(value, turns) > 0}
    for op in operations:
        if any(value in waiting for value in read_values(op)):
            waiting.update(op.results)
    part = tuple(op for op in operations if not waiting.intersection(op.results) and not is_constant(op))
    if part and excess_bytes(step, part, held_inside(step, part)) > WORTH * _held_bytes(step, operations):
        awaited = tuple(value for value in inputs if _turn(value, turns) == last)
        yield Early(segment, part, outside_values(step, part), awaited)


def _turn(value: SSAValue, turns: dict[Operation, int]) -> int:
    return turns[value.owner] if isinstance(value.owner, Operation) else 0


def _held_bytes(step: Step, operations: list[Operation]) -> int:
    """Bytes of the segment that the backward pass reads in the plain step."""
    order, phases = step.phases.order, step.phases
    return sum(
        value_bytes(value)
        for op in operations
        for value in op.results
        if step.storages.of(value) is value and any(phases.is_gradient(one) for one in order.readers(value))
    )
