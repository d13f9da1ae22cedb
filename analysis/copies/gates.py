"""What the copies of a unit wait for: the cotangents that have arrived when its first reader runs.

A gate is a gradient value, not made from constants alone, that is defined before the copies: program order then rules
out cycles. And it must not be there too early: a gradient operation that reads nothing but the segment's own values, or
earlier ones, could run in the forward pass, and the copies with it. Source of the choice: jax.checkpoint, whose barrier
holds the incoming cotangents and all inputs.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from ..copied import is_copy
from ..order import read_values
from ..step import Step


def find_gates(step: Step, readers: Iterable[Operation], after: int, insertion: int) -> tuple[SSAValue, ...]:
    """Gradient values from before the insertion point that lead to the readers through gradient operations after it.

    Those from before the position `after`, of an earlier gradient, are there already and hold nothing back.
    """
    order, phases = step.phases.order, step.phases
    gates = dict[SSAValue, None]()
    seen, stack = set[Operation](), list(readers)
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for value in read_values(op):
            owner = value.owner
            if not isinstance(owner, Operation) or not phases.is_gradient(owner):
                continue
            if order.position[owner] >= insertion:
                stack.append(owner)
            elif order.position[owner] > after and is_gate(step, value):
                gates[value] = None
    return tuple(sorted(gates, key=order.definition))


def is_gate(step: Step, value: SSAValue) -> bool:
    """Whether a value can only exist once the backward pass has come to it."""
    owner = value.owner
    return (
        isinstance(owner, Operation)
        and step.phases.is_gradient(owner)
        and value not in step.constants
        and not is_copy(owner)
        and not _delays_forward_value(step, value)
    )


def _waits(step: Step, value: SSAValue, after: int) -> bool:
    """Whether the value cannot be there before the forward pass has gone on, past the position `after`."""
    assert isinstance(value.owner, Operation), "a gate is made by an operation"
    return step.known_after[value.owner] > after


def hold_back(step: Step, gates: Iterable[SSAValue], values: Iterable[SSAValue]) -> bool:
    """Whether one of the gates comes after all of the values, or needs a cotangent from outside."""
    after = max(step.phases.order.definition(value) for value in values)
    return any(gate.owner in step.needs_cotangent or _waits(step, gate, after) for gate in gates)


def _latest_gate(step: Step, after: int, insertion: int) -> SSAValue | None:
    """The gradient value that is made last between the two positions: to wait for it is to keep program order."""
    operations = step.phases.order.operations
    for index in range(insertion - 1, after, -1):
        if step.phases.is_gradient(operations[index]):
            for value in operations[index].results:
                if is_gate(step, value) and _waits(step, value, after):
                    return value
    return None


def _delays_forward_value(step: Step, value: SSAValue) -> bool:
    """A barrier or a depend of an earlier run stands in the backward pass, but hands on a forward value."""
    owner = step.storages.of(value).owner
    return not isinstance(owner, Operation) or step.phases.is_forward(owner)


def gates_for(
    step: Step, values: Iterable[SSAValue], readers: Iterable[Operation], insertion: int, chain: bool = False
) -> tuple[SSAValue, ...]:
    """The cotangents that lead to the readers of the recomputed `values`, and come after these.

    Where there are none, or in a `chain`, what the gradient made last; where the forward pass does not hold the
    gradient back at all, the cotangents that are given as arguments.
    """
    after = max((step.phases.order.definition(value) for value in values), default=-1)
    leading = find_gates(step, readers, after, insertion)
    found = tuple(value for value in leading if _waits(step, value, after))
    latest = _latest_gate(step, after, insertion) if chain or not found else None
    if latest is not None and latest not in found:
        return (*found, latest)
    return found or tuple(value for value in leading if value.owner in step.needs_cotangent)
