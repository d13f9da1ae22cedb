"""A function that is marked where it is called: a scope around the call says what is recomputed of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import jax

from ...analysis.request.called import DEFAULT, Called, Kind, Switches, spelled

R = TypeVar("R")
_NUMBERS = count()


def called(
    function: Callable[..., R],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    kind: Kind = Kind.SEGMENT,
    switches: Switches = DEFAULT,
) -> R:
    """What the function gives. `recompute.jax.jit` does with its operations what is said; `jax.jit` does nothing."""
    with jax.named_scope(spelled(Called(name_of(function), next(_NUMBERS), kind, switches))):
        return function(*args, **kwargs)


def name_of(function: object) -> str:
    """What a segment is called: by the function, by the module's own name, or by its class."""
    said = getattr(function, "__name__", None) or getattr(function, "name", None)
    return said if isinstance(said, str) else type(function).__name__
