"""Rewrite a lowered step within its budget: compile candidates, or reapply the plan of an earlier search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....driver.api import rewrite
from ....driver.verification.verified import NotProved
from ....planning.plan_file import from_json
from ....search.local_choices.limit_segments import selection_without_budgets
from ....support.diagnostics import Refusal
from ....support.progress import ProgressLine
from ..bridge import crossing
from ..compilation.budgeted import compile_within
from ..compilation.budgeted_result import BudgetedCompile, result_of_record
from ..compilation.compiler_options import merges_copies
from ..compilation.compilers import Compilers
from ..internals import private
from ..messages import why_plain
from .compile_lowered import compile_lowered, keeping_options
from .lowered import Lowered
from .merged import merging_options


def rewrite_within(step: Lowered, module: ModuleOp, line: ProgressLine) -> Lowered:
    """Rewrite the step within its budget.

    Args:
        step: The plain step.
        module: The plain step as an xDSL module, with its marks.
        line: The line on which progress is shown.

    Raises:
        Refusal: If no candidate meets the budget.
    """
    result = None if step.own_barriers else _by_earlier_search(step, module)
    if result is None:
        result = _search(step, module, line)
    line.result = result.summary
    if (rewritten := result.rewritten) is not None:
        optimized = crossing.with_module(step.plain, rewritten.module)
        return replace(step, optimized=optimized, rewritten=rewritten, remarks=rewritten.remarks, within=result)
    remedy = why_plain.SMALLER_BUDGET
    if result.is_keeping or result.limit_bytes is None:
        remedy = why_plain.REMOVE_CHECKPOINT if result.is_keeping else why_plain.NAME_BLOCKS
    reason = why_plain.PlainReason(step.name, result.why_plain, remedy)
    return replace(step, remarks=(result.why_plain,), plain_reason=reason, within=result)


def _search(step: Lowered, module: ModuleOp, line: ProgressLine) -> BudgetedCompile:
    """Search for a candidate within the budget. If possible, first try the step with the copies of its own
    `jax.checkpoint` merged into their originals."""
    options = step.options.rewrite_without_budget
    merging = merging_options(module, options) if step.own_barriers else None
    alternatives = [options] if merging is None else [merging, options]
    return compile_within(
        step.name,
        module,
        alternatives=alternatives,
        options=step.options,
        compilers=_compilers_of(step),
        line=line,
    )


def _by_earlier_search(step: Lowered, module: ModuleOp) -> BudgetedCompile | None:
    """Return the result of an earlier search on the same step, even if the step was at other source lines during that
    search.

    The plan of that search is reapplied, and the result is proved. Return None if there is no such search, or if the
    copies, their FLOPs, or the size of the result have changed.
    """
    stored = step.cache.without_lines(module).step()
    if stored is None or stored.rewritten is None or stored.within is None:
        return None
    options = step.options.rewrite_without_budget
    selection = selection_without_budgets(options.selection)
    try:
        rewritten = rewrite(module, replace(options, selection=selection, plan=from_json(stored.rewritten.plans)))
    except (Refusal, NotProved):
        return None
    if (rewritten.copies, rewritten.extra_flops) != (stored.rewritten.copies, stored.rewritten.extra_flops):
        return None
    compiled = _compilers_of(step).compile_rewritten(rewritten.module, {})
    return result_of_record(stored.within, rewritten, compiled)


def _compilers_of(step: Lowered) -> Compilers:
    """Return the functions that compile a step during the search under its budget."""
    options, plain = step.options, step.plain
    platforms = private.platforms(plain)
    keeping = keeping_options(plain, options, None)

    def compile_rewritten(rewritten: ModuleOp, measuring: Mapping[str, Any]) -> jax.stages.Compiled:
        compiler_options = keeping_options(plain, options, measuring if "cpu" in platforms else None)
        return compile_lowered(crossing.with_module(plain, rewritten), compiler_options)

    has_keeping = step.own_barriers and merges_copies(platforms)
    return Compilers(
        compile_plain=lambda: compile_lowered(plain, None),
        compile_rewritten=compile_rewritten,
        key=repr((platforms, sorted((keeping or {}).items()))),
        compile_keeping=(lambda: compile_lowered(plain, keeping)) if has_keeping else None,
    )
