"""Legality of recomputation: the reason that an operation must not run twice, or that a value stays live."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...planning.by_segment.copy_requests import LIVES_ON, UPDATE_READS
from ...rules.names import name_of
from ...rules.permission import NOTHING, Permission
from ..step.exchanges import why_not_again
from ..step.step import Step


def refused(step: Step, permission: Permission) -> frozenset[int]:
    """The operations that must not run twice."""
    impure = step.graph.impure
    return frozenset(index for index in impure if why_not_again(step.operation(index), permission) is not None)


def why_not_recomputable(step: Step, op: Operation, permission: Permission = NOTHING) -> str | None:
    """The reason that the operation must not run twice; None if it may."""
    if not step.phases.is_forward(op):
        return f"{name_of(op)} is not recomputed: it runs in phase '{step.phases.phase[op]}', not in the forward pass"
    if (reason := why_not_again(op, permission)) is not None:
        return f"{name_of(op)} is not recomputed: {reason}"
    staying = [why_stays(step, result) for result in op.results]
    if staying and None not in staying:
        return f"{name_of(op)} is not recomputed: {LIVES_ON if LIVES_ON in staying else UPDATE_READS}"
    return None


def why_stays(step: Step, value: SSAValue) -> str | None:
    """The reason that a value is live after the backward pass; None if it need not be."""
    graph, number = step.graph, step.number(value)
    if graph.root[number] not in graph.lives_on:
        return None
    return LIVES_ON if number in graph.returned else UPDATE_READS
