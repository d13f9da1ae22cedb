"""Rewrite a step that JAX has lowered, or read its rewrite from the disk cache.

A step passes through these forms: `jax.stages.Lowered`, StableHLO with locations, the result of `recompute.rewrite`,
and `Lowered` (the plain and the rewritten step).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache as cache_of_call
from typing import Any

import jax
from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from ....dialects.mark_calls import is_named_as_mark
from ....dialects.stablehlo.control import OptimizationBarrierOp
from ....driver.api import rewrite
from ....driver.cache.stored_rewrite import RewriteRecord
from ....driver.rewrites.rewritten import Rewritten
from ....driver.verification.verified import NotProved
from ....options.selection import BadSelection
from ....planning.plan_file import from_json
from ....search.budget.compiled_refusal import BudgetNotReached
from ....search.local_choices.limit_segments import selection_without_budgets
from ....support.counted import counted_are
from ....support.diagnostics import Refusal
from ....support.operations import every_operation
from ....support.progress import ProgressLine, progress
from ....support.remarks import Remark
from ....transforms.merge_remat import is_of_remat
from ..annotations.unused_marks import unused_marks
from ..annotations.value_marks import WRITTEN_AS_CALLS
from ..bridge import crossing
from ..compilation.budgeted import compile_within
from ..compilation.budgeted_result import BudgetedCompile, record_of, result_of_record
from ..compilation.compiler_options import merges_copies
from ..compilation.compilers import Compilers
from ..compilation.device_limits import demand_device_memory
from ..internals import private
from ..keywords.host_memory import supported_options
from ..keywords.jit_options import JitOptions
from ..keywords.name_check import demand_names
from ..keywords.off_switch import WHY
from ..keywords.segment_check import demand_segments, in_terms_of_model
from ..messages import why_plain
from ..messages.branch_residuals import with_branch_advice
from .lowered import (
    BEFORE_COMPILING,
    NOT_CACHED,
    Lowered,
    compile_lowered,
    keeping_options,
    nothing_to_read,
    searching_options,
)
from .merged import merging_options, selects_segments
from .step_cache import StepCache, StoredStep

_LOG = logging.getLogger("recompute.jax")
# Operations that JAX adds during lowering get the location of the user's line, not of these files.
for _file in (__file__, private.__file__):
    source_info_util.register_exclusion(_file)


def lower_with_marks(traced: jax.stages.Traced) -> jax.stages.Lowered:
    """Lower a step such that its marks and names become custom calls. The pass `recompute-take-marks` reads these
    calls."""
    return private.lower_with_rules(traced, WRITTEN_AS_CALLS)


def lower_and_rewrite(name: str, traced: jax.stages.Traced, options: JitOptions) -> Lowered:
    """Lower and rewrite the step. If it cannot be rewritten, return the plain step with the reason in `why`.

    Raises:
        ValueError: For a selection that does not apply to the step.
        UnsupportedJax: If the installed JAX lacks a private attribute.
        Refusal, NotProved, ParseError: As `recompute.rewrite` raises them, if the options demand a rewrite (`strict`, a
            budget, a plan, a planner or a pipeline). Otherwise, the message of the error becomes the reason.
    """
    marked = lower_with_marks(traced)
    private.demand_attributes(marked)
    cache = StepCache.of(name, marked, options)
    if (stored := cache.step()) is not None:
        lowered = _from_cache(name, traced, marked=marked, options=options, cache=cache, stored=stored)
        if lowered is not None:
            return replace(lowered, unused_marks=unused_marks(traced))
    lowered = _rewrite_uncached(name, traced, marked, options, cache)
    if cache.key is not None and (lowered.within is None or lowered.within.is_complete):
        stored = _stored(lowered, marked)
        cache.store_step(stored)
        if lowered.within is not None and (module := lowered.read()) is not None:
            cache.without_lines(module).store_step(replace(stored, bytecode=b""))
    return replace(lowered, unused_marks=unused_marks(traced))


def unchanged_step(name: str, plain: jax.stages.Lowered, options: JitOptions) -> Lowered:
    """Return the plain step. It runs while recomputation is switched off."""
    step = _LoweredStep(name=name, options=options, plain=plain)
    return step.unchanged((WHY,), f"{name}: the plain step runs: {WHY}")


@dataclass(frozen=True, kw_only=True)
class _LoweredStep:
    """A step that JAX has lowered: it has the attributes of `Lowered` that do not depend on the rewrite."""

    name: str
    options: JitOptions
    plain: jax.stages.Lowered
    own_barriers: bool = False
    read: Callable[[], ModuleOp | None] = nothing_to_read
    cache: StepCache = NOT_CACHED

    def result(
        self,
        rewritten: Rewritten | None,
        optimized: jax.stages.Lowered,
        remarks: Sequence[Remark | str],
        why: str | None,
        within: BudgetedCompile | None = None,
    ) -> Lowered:
        """Return the step as a `Lowered`, with the result of its rewrite. The parameters are attributes of
        `Lowered`."""
        return Lowered(
            name=self.name,
            options=self.options,
            plain=self.plain,
            optimized=optimized,
            rewritten=rewritten,
            remarks=tuple(remarks),
            why=why,
            own_barriers=self.own_barriers,
            within=within,
            read=self.read,
            cache=self.cache,
        )

    def unchanged(self, remarks: Sequence[Remark | str], why: str) -> Lowered:
        """Return the plain step. `why`: the reason that it is not rewritten."""
        return self.result(None, self.plain, remarks, why)

    def refused(self, error: Refusal | NotProved | ParseError) -> Lowered:
        """Return the plain step, whose rewrite was refused with this error. If the options demand a rewrite, raise the
        error."""
        if self.options.demands(error):
            raise why_plain.in_jax_terms(self.name, error) from error.__cause__
        remark = Remark(error.operation, error.reason) if isinstance(error, Refusal) else str(error)
        return self.unchanged((remark,), why_plain.refused(self.name, error))


def _rewrite_uncached(
    name: str, traced: jax.stages.Traced, marked: jax.stages.Lowered, options: JitOptions, cache: StepCache
) -> Lowered:
    """Rewrite as `lower_and_rewrite` does, but without the cache. `marked`: the step, lowered with its marks."""
    try:
        module = crossing.module_of(marked, name)
    except ParseError as error:
        return _LoweredStep(name=name, options=options, plain=traced.lower(), cache=cache).refused(error)
    options = options.without_names(demand_names(name, module, options.named))
    demand_device_memory(module, options.budget)
    if options.budget is not None:
        demand_segments(name, module, options.rewrite)
    operations = every_operation(module)
    plain = traced.lower() if any(map(is_named_as_mark, operations)) else marked
    options, host_remarks = supported_options(options, private.platforms(plain))
    own_barriers = any(isinstance(op, OptimizationBarrierOp) for op in operations)
    step = _LoweredStep(
        name=name, options=options, plain=plain, own_barriers=own_barriers, read=lambda: module, cache=cache
    )
    try:
        with progress(f"{why_plain.PACKAGE}: {name}") as line:
            lowered = _without_budget(step, module, line) if options.budget is None else _within(step, module, line)
    except (Refusal, NotProved) as error:
        if isinstance(error.__cause__, BadSelection):
            raise in_terms_of_model(name, module, error.__cause__) from error
        if isinstance(error, BudgetNotReached):
            return step.refused(with_branch_advice(error, module))
        return step.refused(error)
    return replace(lowered, remarks=(*lowered.remarks, *host_remarks))


def _without_budget(step: _LoweredStep, module: ModuleOp, line: ProgressLine) -> Lowered:
    """Rewrite the step without a budget. Raises `Refusal` and `NotProved`."""
    line.span = 0.0, BEFORE_COMPILING
    rewritten = rewrite(module, searching_options(step.options, step.plain))
    line.result = _recomputed(rewritten.copies)
    for remark in rewritten.remarks:
        _LOG.debug("%s: %s", step.name, remark)
    if rewritten.copies:
        return step.result(rewritten, crossing.with_module(step.plain, rewritten.module), rewritten.remarks, None)
    why = why_plain.nothing_recomputed(step.name, rewritten.remarks)
    if any(map(is_of_remat, every_operation(module))):
        why = why_plain.checkpointed(step.name, selects_segments(step.options.rewrite))
    return step.result(rewritten, step.plain, rewritten.remarks, why)


def _within(step: _LoweredStep, module: ModuleOp, line: ProgressLine) -> Lowered:
    """Rewrite the step within its budget. Raises `Refusal` if no candidate meets it."""
    result = None if step.own_barriers else _by_earlier_search(step, module)
    if result is None:
        result = _search(step, module, line)
    line.result = result.summary
    if (rewritten := result.rewritten) is not None:
        optimized = crossing.with_module(step.plain, rewritten.module)
        return step.result(rewritten, optimized, rewritten.remarks, None, result)
    remedy = why_plain.SMALLER_BUDGET
    if result.is_keeping or result.limit_bytes is None:
        remedy = why_plain.REMOVE_CHECKPOINT if result.is_keeping else why_plain.NAME_BLOCKS
    why = why_plain.plain_message(step.name, result.why_plain, remedy)
    return step.result(None, step.plain, (result.why_plain,), why, result)


def _search(step: _LoweredStep, module: ModuleOp, line: ProgressLine) -> BudgetedCompile:
    """Search for a candidate within the budget, if possible first with the copies of the step's own `jax.checkpoint`
    merged."""
    options = step.options.rewrite
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


def _by_earlier_search(step: _LoweredStep, module: ModuleOp) -> BudgetedCompile | None:
    """Return the result of an earlier search on the same step. The step may have been at other source lines then.

    The plan of that search is reapplied, and the result is proved. Return None if there is no such search, or if the
    copies, their FLOPs, or the size of the result have changed.
    """
    stored = step.cache.without_lines(module).step()
    if stored is None or stored.rewritten is None or stored.within is None:
        return None
    options = step.options.rewrite
    selection = selection_without_budgets(options.selection)
    try:
        rewritten = rewrite(module, replace(options, selection=selection, plan=from_json(stored.rewritten.plans)))
    except (Refusal, NotProved):
        return None
    if (rewritten.copies, rewritten.extra_flops) != (stored.rewritten.copies, stored.rewritten.extra_flops):
        return None
    compiled = _compilers_of(step).compile_rewritten(rewritten.module, {})
    return result_of_record(stored.within, rewritten, compiled)


def _compilers_of(step: _LoweredStep) -> Compilers:
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


def _stored(lowered: Lowered, marked: jax.stages.Lowered) -> StoredStep:
    """Return a step in the form that the cache stores. `marked`: the step, lowered with its marks."""
    rewritten = lowered.rewritten
    return StoredStep(
        has_marks=lowered.plain is not marked,
        own_barriers=lowered.own_barriers,
        why=lowered.why,
        rewritten=None if rewritten is None else RewriteRecord.of(rewritten),
        remarks=lowered.remarks[0 if rewritten is None else len(rewritten.remarks) :],
        within=None if lowered.within is None else record_of(lowered.within),
        bytecode=b"" if lowered.optimized is lowered.plain else lowered.cache.bytecode_of(lowered.optimized),
    )


def _from_cache(
    name: str,
    traced: jax.stages.Traced,
    marked: jax.stages.Lowered,
    options: JitOptions,
    cache: StepCache,
    stored: StoredStep,
) -> Lowered | None:
    """Restore a step from its stored form; return None if its size differs from the one that the budget search
    measured."""

    @cache_of_call
    def read() -> ModuleOp | None:
        try:
            return crossing.module_of(marked, name)
        except ParseError:
            return None

    plain = traced.lower() if stored.has_marks else marked
    options, _ = supported_options(options, private.platforms(plain))
    optimized = private.with_module(plain, private.module_of_bytecode(stored.bytecode)) if stored.bytecode else plain
    rewritten = None if stored.rewritten is None else cache.restore_rewrite(stored.rewritten, optimized, read)
    result = None
    if stored.within is not None:
        is_plain = rewritten is None and not stored.within["is_keeping"]
        keeping = None if is_plain else keeping_options(plain, options, None)
        result = result_of_record(stored.within, rewritten, compile_lowered(optimized, keeping))
        if result is None:
            return None
    remarks = (*(() if rewritten is None else rewritten.remarks), *stored.remarks)
    step = _LoweredStep(
        name=name, options=options, plain=plain, own_barriers=stored.own_barriers, read=read, cache=cache
    )
    return step.result(rewritten, optimized, remarks, stored.why, result)


def _recomputed(copies: int) -> str:
    """Describe the result of a rewrite without a budget, for the progress line."""
    return f"{counted_are(copies, 'operation')} recomputed" if copies else "nothing is recomputed"
