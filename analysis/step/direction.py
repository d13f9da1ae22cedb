"""The direction of differentiation of an operation: forward or backward."""

from __future__ import annotations

from enum import Enum


class Direction(Enum):
    """The pass to which an operation belongs. The values of the members appear in error messages.

    The built-in phase sources return the pass of the outermost differentiation. For a gradient of a gradient, a source
    that cannot tell which differentiation is the outermost returns `NESTED`. Such a step is refused.
    """

    NONE = "neither direction"
    FORWARD = "the forward pass"
    BACKWARD = "the backward pass"
    NESTED = "a gradient of a gradient"
