"""`recompute.jax.explain(step, *arguments)`: a report on whether a step fits a budget, and why."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp

from ...support.diagnostics import Refusal
from .compilation.allocation import UnknownMemory
from .compilation.budgeted import BudgetNotReached
from .compilation.device_limits import device_limit
from .jitted import Jitted
from .keywords.budget_option import checked_budget
from .keywords.jit_options import options_of
from .messages.tracebacks import shortened
from .module_step import ModuleStep
from .private import statics_of
from .reports.fit_verdict import DeviceBytes, fit_verdict
from .reports.step_report import Report, report

source_info_util.register_exclusion(__file__)


@shortened
def explain(step: Any, /, *args: Any, budget: int | float | str | None = None, **kwargs: Any) -> Report:
    """Report on the memory of a step, plain and recomputed; both are compiled.

    The first line of the report is the answer: `fits`, `does not fit` or `unknown`.

    If the step does not fit the budget as `recompute.jax.jit` rewrites it without one, plans are searched as by
    `recompute.jax.jit(step, budget=...)`, in the same time. The report is then on the step within the budget; if no
    plan keeps the budget, on the step without a budget, with the reason.

    Args:
        step: A function, or the result of `jax.jit`, `recompute.jax.jit`, `recompute.eqx.filter_jit` or
            `recompute.nnx.jit`.
        *args: The arguments of the step, arrays or `jax.ShapeDtypeStruct`.
        budget: As for `recompute.jax.jit`: bytes of the device such as `"16GB"`, a share of the temporaries of the
            plain step, or `"min"`; by default the memory of the device, for which no plans are searched.
        **kwargs: The keyword arguments of the step.

    Returns:
        The report, which `print` shows. Its `fit` is the answer; None for the budget `"min"`.

    Raises:
        TypeError: For a budget of another type, and for the result of `nnx.jit` or `eqx.filter_jit`.
        ValueError: For an invalid budget.
        Refusal, NotProved, ParseError: As `recompute.jax.jit(step).lower` raises them.
    """
    text = None if budget is None else checked_budget(budget, "recompute.jax.explain")
    if isinstance(step, ModuleStep):
        return step.in_its_terms(step.of_arrays(partial(_explain, step.inner, text), args, kwargs))
    jitted: Any = step
    if not isinstance(step, Jitted):
        _demand_no_jit_of_modules(step)
        # Static arguments count in the numbers that `donate_argnums` takes.
        static = {"static_argnums": statics_of(step).numbers} if hasattr(step, "trace") else {}
        jitted = Jitted(step, options_of(static), step if hasattr(step, "trace") else None)
    return _explain(jitted, text, *args, **kwargs)


_OF_MODULES = (
    ("flax.nnx.", "nnx.jit", "recompute.nnx.jit"),
    ("equinox.", "eqx.filter_jit", "recompute.eqx.filter_jit"),
)
"""Of each framework with modules: the beginning of the names of its modules in Python, its jit, and ours for it."""


def _demand_no_jit_of_modules(step: Any) -> None:
    """Raise `TypeError` for the result of another framework's jit, which hides the jitted function of arrays."""
    for library, theirs, ours in _OF_MODULES:
        if type(step).__module__.startswith(library) and hasattr(step, "lower"):
            name = getattr(step, "__name__", "step")
            raise TypeError(
                f"recompute.jax.explain: {name} is a result of {theirs}; give the result of {ours}, which takes the "
                f"same options: recompute.jax.explain({ours}({name}), *arguments)"
            )


def _explain(jitted: Jitted[..., Any], budget: str | None, /, *args: Any, **kwargs: Any) -> Report:
    """Explain as `explain` does. `budget`: the checked budget."""
    lowered = jitted.lower_quietly(*args, **kwargs)
    if budget is None:
        without = report(lowered)
        return _answered(without, without.budget)
    try:
        limit = device_limit(lowered.module or ModuleOp([]), budget, lowered.plain_measured)
    except UnknownMemory as error:
        return _answered(replace(report(lowered, budget_text=budget), refused=error.reason), None)
    if limit is not None:
        without = report(lowered, limit, budget)
        if without.less.device_bytes is None or without.less.device_bytes <= limit:
            return _answered(without, limit)
    try:
        within = jitted.within(budget).lower_quietly(*args, **kwargs)
    except Refusal as error:
        least = error.least_bytes if isinstance(error, BudgetNotReached) else None
        refused = replace(report(lowered, limit, budget), refused=error.reason)
        return _answered(refused, limit, least, searched=True)
    rewritten = report(within, limit, budget)
    return rewritten if limit is None else _answered(rewritten, limit)


def _answered(of_step: Report, limit: int | None, least: int | None = None, *, searched: bool = False) -> Report:
    """Return the report with the answer.

    Args:
        of_step: The report.
        limit: The bytes that the budget allows on each device; None if the device does not report its memory.
        least: The temporaries of the smallest candidate of a search that failed.
        searched: Whether a search found no plan for the budget.
    """
    plain = of_step.plain
    fixed = plain.arguments + plain.results - plain.aliased
    least_bytes = None if least is None else least + fixed
    needs = DeviceBytes(plain.device_bytes, of_step.less.device_bytes, fixed, least_bytes, of_step.devices)
    return replace(of_step, fit=fit_verdict(needs, limit, searched=searched))
