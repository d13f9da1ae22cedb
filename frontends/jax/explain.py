"""`recompute.jax.explain(step, *arguments)`: does it fit, what holds the peak, and what did nothing?"""

from __future__ import annotations

from typing import Any

import jax

from ...support.units import parse_bytes
from .jit import Jitted
from .lowered import rewritten
from .options import options_of
from .report import Report, report

_JAX: Any = jax
"""JAX's own types are partly unknown to type checkers."""


def explain(step: Any, /, *args: Any, budget: int | str | None = None, **kwargs: Any) -> Report:
    """A report on a step: a function, what `jax.jit` returned, or what `recompute.jax.jit` did.

    args, kwargs: of the step, arrays or `jax.ShapeDtypeStruct`. budget: bytes, or a text such as "16GB" or "40 GiB"; if
    nothing is said, what the device has. Raises `ValueError` for a text that is no size, and what `lower` raises.
    """
    limit = parse_bytes(budget) if isinstance(budget, str) else budget
    if isinstance(step, Jitted):
        return report(step.lower_quietly(*args, **kwargs), limit)  # pyright: ignore[reportUnknownMemberType]
    jitted = step if hasattr(step, "trace") else _JAX.jit(step)
    name = str(getattr(step, "__name__", type(step).__name__))
    return report(rewritten(name, jitted.trace(*args, **kwargs), options_of({})), limit)
