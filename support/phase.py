"""The phases of a training step."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The phase of an operation. The values are the possible values of the attribute `recompute.phase`.

    Attributes:
        PRIMAL: Forward pass, needed by a result that exists before the gradient.
        RESIDUAL: Forward pass, needed only by the backward pass.
        GRADIENT: Backward pass.
        UPDATE: After the gradient, which does not need it.
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
