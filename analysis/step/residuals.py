"""Residuals: the values that cross from the forward into the backward pass, and that a training step saves."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from .order import constants_only
from .phases import Phases


@dataclass(frozen=True)
class Residual:
    """A forward value that the backward pass reads. `via`: how it is read; always by a direct use today."""

    value: SSAValue
    position: int
    via: str = "use"


def residuals(phases: Phases) -> list[Residual]:
    """Return the values of the forward pass, other than constants, that a gradient or update operation reads."""
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
