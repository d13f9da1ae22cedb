"""The direction of differentiation, forward or backward, of an operation of a training step."""

from __future__ import annotations

from enum import Enum


class Direction(Enum):
    """The values are the wording in error messages."""

    NONE = "neither direction"
    FORWARD = "the forward pass"
    BACKWARD = "the backward pass"
    NESTED = "a gradient of a gradient"
