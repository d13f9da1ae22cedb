"""The phases of a training step."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The phase of an operation. The values are the possible values of the attribute `recompute.phase`.

    Attributes:
        PRIMAL: The operation is in the forward pass, and a result that exists before the gradient depends on it.
        RESIDUAL: The operation is in the forward pass, but only the backward pass depends on it.
        GRADIENT: The operation is in the backward pass.
        UPDATE: The operation runs after the gradient, and the gradient does not depend on it.
    """

    PRIMAL = "primal"
    RESIDUAL = "residual"
    GRADIENT = "gradient"
    UPDATE = "update"

    @property
    def is_forward(self) -> bool:
        return self in FORWARD_PHASES


FORWARD_PHASES = frozenset({Phase.PRIMAL, Phase.RESIDUAL})
"""The phases of the forward pass. For many operations, a lookup in this set is faster than `Phase.is_forward`."""
