"""Values that are computed on first access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Deferred(Generic[T]):
    """A value that is computed on first access. The access also releases the function that computes the value."""

    def __init__(self, compute: Callable[[], T]):
        self._compute: Callable[[], T] | None = compute
        self._computed = list[T]()

    @property
    def value(self) -> T:
        if self._compute is not None:
            self._computed.append(self._compute())
            self._compute = None
        return self._computed[0]
