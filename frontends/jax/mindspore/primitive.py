"""`ops.Primitive.recompute`: one operation that is always recomputed, or never, regardless of enclosing cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ....analysis.request.scope_names import CallTreatment
from .. import checked
from ..called import called

R = TypeVar("R")


class Primitive(Generic[R]):
    """A function of JAX as one operation, such as `jnp.exp`. Raises `TypeError` if it is not callable."""

    def __init__(self, function: Callable[..., R]) -> None:
        checked.a_callable("Primitive", function)
        self.function = function
        self.mode: bool | None = None

    def recompute(self, mode: bool = True) -> Primitive[R]:
        """Recompute later calls, results included, also outside cells; or, with False, never, even inside a cell.

        Returns the primitive itself. Raises `TypeError` if `mode` is neither True nor False.
        """
        checked.flags("Primitive.recompute", mode=mode)
        self.mode = mode
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.mode is None:
            return self.function(*args, **kwargs)
        return called(self.function, args, kwargs, kind=CallTreatment.AGAIN if self.mode else CallTreatment.SAVE)

    def __repr__(self) -> str:
        return f"Primitive({self.function!r}{'' if self.mode is None else f', recompute={self.mode}'})"
