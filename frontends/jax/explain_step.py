"""`recompute.jax.explain(step, *arguments)`: a report on whether a step fits a budget, and why."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp

from ...search.budget.compiled_refusal import BudgetNotReached
from ...support.diagnostics import Refusal
from ...support.progress import progress
from .compilation.allocation import UnknownMemory
from .compilation.device_limits import device_limit
from .internals.private import statics_of
from .jitted import Jitted
from .keywords.budget_option import checked_budget
from .keywords.jit_options import options_of
from .lowering.argument_hint import demand_keywords
from .lowering.lowered import Lowered
from .messages.tracebacks import shortened
from .module_step import ModuleStep
from .reports.fit_verdict import DeviceBytes, fit_verdict
from .reports.step_report import Report

source_info_util.register_exclusion(__file__)


@shortened
def explain(step: Any, /, *args: Any, budget: int | float | str | None = None, **kwargs: Any) -> Report:
    """Report on the memory of the plain step and of the rewritten step. Both are compiled.

    The first line of the report is the answer: `fits`, `does not fit` or `unknown`.

    With a budget, the report is on the step that `recompute.jax.jit(step, budget=...)` would run when called: the plain
    step if it fits, otherwise the result of a search for plans. The search takes as long as such a call. If no plan
    meets the budget, the report is on the step without a budget, and gives the reason.

    Args:
        step: A function, or the result of `jax.jit`, `recompute.jax.jit`, `recompute.eqx.filter_jit` or
            `recompute.nnx.jit`.
        *args: The arguments of the step, arrays or `jax.ShapeDtypeStruct`.
        budget: As for `recompute.jax.jit`: bytes of the device such as `"16GB"`, a share of the temporaries of the
            plain step, or `"min"`. With `"min"`, the smallest step that a search finds is compared with the memory of
            the device. The default is the memory of the device, without a search.
        **kwargs: The keyword arguments of the step.

    Returns:
        The report. `print` shows it. Its attribute `fit` is the answer.

    Raises:
        TypeError: For a budget of the wrong type, and for the result of `nnx.jit` or `eqx.filter_jit`.
        ValueError: For an invalid budget.
        Refusal, NotProved, ParseError: As `recompute.jax.jit(step).lower` raises them.
    """
    text = None if budget is None else checked_budget(budget, "recompute.jax.explain")
    if isinstance(step, ModuleStep):
        demand_keywords(step.inner.__name__, step.__wrapped__, kwargs)
        return step.reworded_report(step.call_with_arrays(partial(_explain, step.inner, text), args, kwargs))
    jitted: Any = step
    if not isinstance(step, Jitted):
        _demand_no_jit_of_modules(step)
        # The indices in `donate_argnums` include static arguments.
        static = {"static_argnums": statics_of(step).indices} if hasattr(step, "trace") else {}
        jitted = Jitted(step, options_of(static), step if hasattr(step, "trace") else None)
    return _explain(jitted, text, *args, **kwargs)


_JITS_OF_FRAMEWORKS = (
    ("flax.nnx.", "nnx.jit", "recompute.nnx.jit"),
    ("equinox.", "eqx.filter_jit", "recompute.eqx.filter_jit"),
)
"""For each framework with modules: the prefix of its Python modules, its own jit, and its counterpart in this
package."""


def _demand_no_jit_of_modules(step: Any) -> None:
    """Raise `TypeError` for a result of `nnx.jit` or `eqx.filter_jit`, whose inner jitted function is not
    accessible."""
    for library, theirs, ours in _JITS_OF_FRAMEWORKS:
        if type(step).__module__.startswith(library) and hasattr(step, "lower"):
            name = getattr(step, "__name__", "step")
            raise TypeError(
                f"recompute.jax.explain: {name} is a result of {theirs}; give the result of {ours} instead, which takes"
                f" the same options: recompute.jax.explain({ours}({name}), *arguments)"
            )


def _explain(jitted: Jitted[..., Any], budget: str | None, /, *args: Any, **kwargs: Any) -> Report:
    """Return the report of `explain`. `budget`: the checked budget."""
    with progress(f"{jitted.package}: {jitted.__name__}"):
        return _explain_quietly(jitted, budget, *args, **kwargs)


def _explain_quietly(jitted: Jitted[..., Any], budget: str | None, /, *args: Any, **kwargs: Any) -> Report:
    if budget is None:
        without = jitted.lower_quietly(*args, **kwargs).comparison
        return _with_verdict(without, without.search.limit_bytes)
    limited = jitted.within(budget)
    try:
        lowered = limited.lower_quietly(*args, **kwargs)
        limit = _limit_of(lowered, budget)
        within = _under_budget(lowered.comparison, limit, budget)
        is_minimum = within.search.is_minimum
        return _with_verdict(within, within.search.limit_bytes if is_minimum else limit, is_minimum=is_minimum)
    except UnknownMemory as error:
        without = _under_budget(jitted.lower_quietly(*args, **kwargs).comparison, None, budget)
        return _with_verdict(_refused(without, error), None)
    except Refusal as error:
        least = error.least_bytes if isinstance(error, BudgetNotReached) else None
        lowered = jitted.lower_quietly(*args, **kwargs)
        limit = _limit_of(lowered, budget)
        refused = _refused(_under_budget(lowered.comparison, limit, budget), error)
        return _with_verdict(refused, limit, least, has_failed=True)


def _under_budget(step_report: Report, limit: int | None, budget: str) -> Report:
    """Return the report under the caller's budget. `limit`: the budget in bytes; None for the memory of the device."""
    limit_bytes = step_report.search.limit_bytes if limit is None else limit
    return replace(step_report, search=replace(step_report.search, limit_bytes=limit_bytes, text=budget))


def _refused(step_report: Report, error: Refusal) -> Report:
    """Return the report with the reason why no plan is within the budget."""
    return replace(step_report, search=replace(step_report.search, refused=error.reason))


def _limit_of(lowered: Lowered, budget: str) -> int | None:
    """Return the bytes of the device that the step may use within a budget; None for `min`. Raises `UnknownMemory`."""
    return device_limit(lowered.module or ModuleOp([]), budget, lowered.plain_measured)


def _with_verdict(
    step_report: Report,
    limit: int | None,
    least: int | None = None,
    *,
    has_failed: bool = False,
    is_minimum: bool = False,
) -> Report:
    """Return the report with the answer to whether the step fits.

    Args:
        step_report: The report without an answer.
        limit: The bytes that the budget allows on each device; None if the device does not report its memory.
        least: The temporaries of the smallest candidate of a failed search, in bytes.
        has_failed: Whether a search found no plan within the limit.
        is_minimum: Whether the step that runs is the smallest step that a search without a limit found.
    """
    plain = step_report.plain
    fixed = plain.arguments + plain.results - plain.aliased
    least_bytes = None if least is None else least + fixed
    needs = DeviceBytes(plain.device_bytes, step_report.chosen.device_bytes, fixed, least_bytes, step_report.devices)
    return replace(step_report, fit=fit_verdict(needs, limit, has_failed=has_failed, is_minimum=is_minimum))
