"""Mark the calls of a function: a named scope around the call encodes how its operations are recomputed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import jax

from ...analysis.request.scope_names import DEFAULT, Called, CallTreatment, Switches, spelled

R = TypeVar("R")
_NUMBERS = count()


def called(
    function: Callable[..., R],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    kind: CallTreatment = CallTreatment.SEGMENT,
    switches: Switches = DEFAULT,
) -> R:
    """Call the function inside a scope that encodes `kind` and `switches`, and return its result.

    `recompute.jax.jit` recomputes its operations accordingly; `jax.jit` ignores the scope.
    """
    with jax.named_scope(spelled(Called(name_of(function), next(_NUMBERS), kind, switches))):
        return function(*args, **kwargs)


def name_of(function: object) -> str:
    """The segment's name: the function's name, the module's own name, or else that of its class."""
    name = getattr(function, "__name__", None) or getattr(function, "name", None)
    return name if isinstance(name, str) else type(function).__name__
