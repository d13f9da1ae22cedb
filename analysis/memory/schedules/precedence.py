"""What must run before what, whatever the order: operands, captured values, effects, and the turn of the phases.

Forward operations stay before the gradient operations that they stand before, and the other way round: that is how
phases are told from program position (`step/phases.py`). So the block falls into stretches of forward and of other
operations, and an order is an order of each stretch. The first operation of a later stretch stays its first: where only
its location says that the backward pass begins, others would change their phase in front of it.
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
from ...step.phase_sources import sources, who_says
from ...step.phases import Phases


@dataclass(frozen=True)
class Precedence:
    """By positions in program order. `needs[i]`: what must run before operation i, of its own stretch only.

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
                needs[index] = frozenset(one for one in needs[index] if one >= stretch.start) | first
        return cls(stretches, tuple(needs), constants)


def _is_constant(op: Operation, values: Container[SSAValue]) -> bool:
    return bool(op.results) and all(result in values for result in op.results)


def _stretches(order: Order, phases: Phases | None, values: Container[SSAValue]) -> tuple[range, ...]:
    """One where there is no gradient. What nobody says the phase of, constants, begins none."""
    starts, forward = [0], None
    for index, op in enumerate(order.operations[:-1]):
        if phases is None or (_is_constant(op, values) and not _says_its_phase(op)):
            continue
        if forward is not None and forward != phases.is_forward(op):
            starts.append(index)
        forward = phases.is_forward(op)
    ends = [*starts[1:], len(order.operations) - 1]
    return tuple(range(start, end) for start, end in zip(starts, ends, strict=True))


def _says_its_phase(op: Operation) -> bool:
    return who_says(op, sources()) is not None


def _effects_in_order(order: Order) -> list[tuple[int, int]]:
    """Neighbours among the operations that have effects, or unknown ones, reads of memory included."""
    found = [i for i, op in enumerate(order.operations[:-1]) if not is_ordering(op) and why_impure(op) is not None]
    return list(pairwise(found))
