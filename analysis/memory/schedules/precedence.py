"""Precedence constraints of every schedule: operands, captured values, effects, and the sequence of phases.

Forward operations keep their side of each gradient operation, since program position determines phases
(`step/phases.py`). So the block consists of stretches of forward and of other operations, and each stretch is ordered
separately. The first operation of a later stretch stays first: if only its location marks the start of the backward
pass, operations in front of it would change their phase.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from itertools import pairwise

from xdsl.ir import Operation, SSAValue

from ....rules.effects import why_impure
from ....rules.kinds import is_ordering
from ...step.constants import constants_only
from ...step.order import Order, producers
from ...step.phase_sources import source_of, sources
from ...step.phases import Phases


@dataclass(frozen=True)
class Precedence:
    """Constraints as positions in program order. `needs[i]`: the operations of the same stretch that precede i.

    The terminator belongs to no stretch; it runs last.
    """

    stretches: tuple[range, ...]
    needs: tuple[frozenset[int], ...]
    constants: frozenset[int]

    @classmethod
    def of(cls, order: Order, phases: Phases | None) -> Precedence:
        values = constants_only(order)
        constants = frozenset(i for i, op in enumerate(order.operations) if _is_constant(op, values))
        stretches = _stretches(order, phases, values)
        needs = [
            frozenset(order.position[producer] for producer in producers(op) if producer in order.position)
            for op in order.operations
        ]
        for before, after in _effects_in_order(order):
            needs[after] |= {before}
        for stretch in stretches:
            for index in stretch:
                first = {stretch.start} if index > stretch.start > 0 else set[int]()
                needs[index] = frozenset(op for op in needs[index] if op >= stretch.start) | first
        return cls(stretches, tuple(needs), constants)


def _is_constant(op: Operation, values: Container[SSAValue]) -> bool:
    return bool(op.results) and all(result in values for result in op.results)


def _stretches(order: Order, phases: Phases | None, values: Container[SSAValue]) -> tuple[range, ...]:
    """Split the operations where the phase turns; constants without a phase source do not count."""
    starts, forward = [0], None
    for index, op in enumerate(order.operations[:-1]):
        if phases is None or (_is_constant(op, values) and not _has_phase_source(op)):
            continue
        if forward is not None and forward != phases.is_forward(op):
            starts.append(index)
        forward = phases.is_forward(op)
    ends = [*starts[1:], len(order.operations) - 1]
    return tuple(range(start, end) for start, end in zip(starts, ends, strict=True))


def _has_phase_source(op: Operation) -> bool:
    return source_of(op, sources()) is not None


def _effects_in_order(order: Order) -> list[tuple[int, int]]:
    """Adjacent pairs of operations with effects, including unknown effects and reads of memory."""
    impure = [i for i, op in enumerate(order.operations[:-1]) if not is_ordering(op) and why_impure(op) is not None]
    return list(pairwise(impure))
