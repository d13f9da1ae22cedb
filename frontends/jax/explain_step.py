"""`recompute.jax.explain(step, *arguments)`: a report on whether a step fits a budget, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp

from ...support.diagnostics import Refusal
from .budget_option import checked_budget, device_limit
from .jitted import Jitted
from .options import options_of
from .report import Report, report

source_info_util.register_exclusion(__file__)


def explain(step: Any, /, *args: Any, budget: int | float | str | None = None, **kwargs: Any) -> Report:
    """Report on the memory of a step, plain and recomputed; both are compiled.

    If the step does not fit the budget as `recompute.jax.jit` rewrites it without one, plans are searched as by
    `recompute.jax.jit(step, budget=...)`, in the same time. The report is then on the step within the budget; if no
    plan keeps the budget, on the step without a budget, with the reason.

    Args:
        step: A function, or the result of `jax.jit` or of `recompute.jax.jit`.
        *args: The arguments of the step, arrays or `jax.ShapeDtypeStruct`.
        budget: As for `recompute.jax.jit`: bytes of the device such as `"16GB"`, a share of the temporaries of the
            plain step, or `"min"`; by default the memory of the device, for which no plans are searched.
        **kwargs: The keyword arguments of the step.

    Returns:
        The report, which `print` shows.

    Raises:
        TypeError: For a budget of another type.
        ValueError: For an invalid budget.
        Refusal, NotProved, ParseError: As `recompute.jax.jit(step).lower` raises them.
    """
    text = None if budget is None else checked_budget(budget, "recompute.jax.explain")
    jitted: Any = step
    if not isinstance(step, Jitted):
        jitted = Jitted(step, options_of({}), step if hasattr(step, "trace") else None)
    if text is None:
        return jitted.report(*args, **kwargs)
    lowered = jitted.lower_quietly(*args, **kwargs)
    try:
        limit = device_limit(lowered.module or ModuleOp([]), text, lowered.plain_compiled)
    except Refusal as error:
        return replace(report(lowered), budget=0, budget_text=text, refused=error.reason)
    if limit is not None:
        without = report(lowered, limit, text)
        if without.less.device_bytes is None or without.less.device_bytes <= limit:
            return without
    try:
        within = jitted.within(text).lower_quietly(*args, **kwargs)
    except Refusal as error:
        return replace(report(lowered, limit, text), refused=error.reason)
    return report(within, limit, text)
