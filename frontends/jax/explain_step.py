"""`recompute.jax.explain(step, *arguments)`: whether a step fits, the values live at its peak, and the remarks."""

from __future__ import annotations

from typing import Any

import jax
from jax.extend import source_info_util

from ...support.units import demand_unit, parse_bytes
from .jit import Jitted
from .lowering import rewritten
from .options import options_of
from .report import Report, report

source_info_util.register_exclusion(__file__)
_JAX: Any = jax
"""JAX's own types are partly unknown to type checkers."""


def explain(step: Any, /, *args: Any, budget: int | str | None = None, **kwargs: Any) -> Report:
    """Report on the memory of a step, plain and recomputed; both are compiled.

    Args:
        step: A function, or the result of `jax.jit` or of `recompute.jax.jit`.
        args, kwargs: The arguments of the step, arrays or `jax.ShapeDtypeStruct`.
        budget: Bytes, or a text such as "16GB" or "40 GiB"; by default the memory of the device.

    Raises:
        ValueError: For a text that is not a size. Also the errors of `lower`.
    """
    if isinstance(budget, str):
        demand_unit(budget)
    limit, words = (parse_bytes(budget), budget.strip()) if isinstance(budget, str) else (budget, "")
    if isinstance(step, Jitted):
        return report(step.lower_quietly(*args, **kwargs), limit, words)  # pyright: ignore[reportUnknownMemberType]
    jitted = step if hasattr(step, "trace") else _JAX.jit(step)
    name = str(getattr(step, "__name__", type(step).__name__))
    return report(rewritten(name, jitted.trace(*args, **kwargs), options_of({})), limit, words)
