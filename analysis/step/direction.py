"""The direction of differentiation of an operation: forward or backward."""

from __future__ import annotations

from enum import Enum


class Direction(Enum):
    """The pass to which an operation belongs; the values are its names in error messages.

    `NESTED` is for sources of phases outside this project whose frontend marks gradients of gradients without their
    order: the step is refused. The sources of this project return the pass of the outermost differentiation.
    """

    NONE = "neither direction"
    FORWARD = "the forward pass"
    BACKWARD = "the backward pass"
    NESTED = "a gradient of a gradient"
    """Returned by a source that does not know the direction of the outermost differentiation; the step is refused."""
