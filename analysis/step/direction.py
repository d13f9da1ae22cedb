"""The direction of differentiation of an operation: forward or backward."""

from __future__ import annotations

from enum import Enum


class Direction(Enum):
    """The pass to which an operation belongs; the values name it in error messages.

    The built-in phase sources return the pass of the outermost differentiation. A source that cannot tell which
    differentiation of a gradient of a gradient is the outermost returns `NESTED`, and the step is refused.
    """

    NONE = "neither direction"
    FORWARD = "the forward pass"
    BACKWARD = "the backward pass"
    NESTED = "a gradient of a gradient"
