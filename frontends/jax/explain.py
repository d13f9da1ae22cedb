"""`recompute.jax.explain(step, *arguments)`: does it fit, what holds the peak, and what did nothing?"""

from __future__ import annotations

import re
from typing import Any

import jax

from .jit import Jitted
from .lowered import rewritten
from .options import options_of
from .report import Report, report

_SIZE = re.compile(r"\s*([\d.]+)\s*([KMGT]?)(I?)B?\s*", re.IGNORECASE)
_JAX: Any = jax
"""JAX's own types are partly unknown to type checkers."""


def explain(step: Any, /, *args: Any, budget: int | str | None = None, **kwargs: Any) -> Report:
    """A report on a step: a function, what `jax.jit` returned, or what `recompute.jax.jit` did.

    args, kwargs: of the step, arrays or `jax.ShapeDtypeStruct`. budget: bytes, or a text such as "16GB" or "40 GiB"; if
    nothing is said, what the device has. Raises `ValueError` for a text that is no size, and what `lower` raises.
    """
    limit = bytes_in(budget) if isinstance(budget, str) else budget
    if isinstance(step, Jitted):
        return report(step.lower_quietly(*args, **kwargs), limit)  # pyright: ignore[reportUnknownMemberType]
    jitted = step if hasattr(step, "trace") else _JAX.jit(step)
    name = str(getattr(step, "__name__", type(step).__name__))
    return report(rewritten(name, jitted.trace(*args, **kwargs), options_of({})), limit)


def bytes_in(text: str) -> int:
    """`40 GiB` and `40Gi` are 40 * 2**30 bytes, `40GB` and `40G` are 40 * 10**9. Raises `ValueError`."""
    found = _SIZE.fullmatch(text)
    try:
        number = float(found[1]) if found else None
    except ValueError:
        number = None
    if found is None or number is None:
        raise ValueError(f"budget: '{text}' is no size: write bytes, or a text such as '16GB' or '40 GiB'")
    return int(number * (1024 if found[3] else 1000) ** " KMGT".index(found[2].upper() or " "))
