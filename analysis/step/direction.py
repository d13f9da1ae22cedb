"""On which side of the turn from forward to backward an operation of a training step runs, as far as it is told."""

from __future__ import annotations

from enum import Enum


class Direction(Enum):
    """The value is how errors put it."""

    NONE = "neither direction"
    FORWARD = "the forward pass"
    BACKWARD = "the backward pass"
    NESTED = "a gradient of a gradient"
