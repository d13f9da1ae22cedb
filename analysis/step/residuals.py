"""Residuals: the forward values that a training step saves because the backward pass reads them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from .order import constants_only
from .phases import Phases


@dataclass(frozen=True)
class Residual:
    """A forward value that the backward pass reads.

    `position`: the position in program order of the operation that computes it.
    """

    value: SSAValue
    position: int


def residuals(phases: Phases) -> list[Residual]:
    """Return the residuals of the step in program order: forward values, except constants, that a later phase reads."""
    order = phases.order
    terminator = order.operations[-1]
    constants = constants_only(order)
    return [
        Residual(result, index)
        for index, op in enumerate(order.operations)
        if phases.is_forward(op)
        for result in op.results
        if result not in constants
        and any(reader is not terminator and not phases.is_forward(reader) for reader in order.readers(result))
    ]
