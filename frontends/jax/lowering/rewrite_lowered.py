"""Rewrite a step that JAX has lowered, or read its rewrite from the disk cache.

A step passes through these forms: `jax.stages.Lowered`, StableHLO with locations, the result of `recompute.rewrite`,
and `Lowered` (the plain and the rewritten step).
"""

from __future__ import annotations

import logging
from dataclasses import replace

import jax
from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from ....dialects.mark_calls import is_named_as_mark
from ....dialects.stablehlo.control import OptimizationBarrierOp
from ....driver.api import rewrite
from ....driver.verification.verified import NotProved
from ....options.selection import BadSelection
from ....search.budget.compiled_refusal import BudgetNotReached
from ....support.counted import counted_are
from ....support.diagnostics import Refusal
from ....support.operations import every_operation
from ....support.progress import ProgressLine, progress
from ....support.remarks import Remark
from ....transforms.merge_remat import is_of_remat
from ..annotations.unused_marks import unused_marks
from ..annotations.value_marks import WRITTEN_AS_CALLS
from ..bridge import crossing
from ..compilation.device_limits import demand_possible_budget
from ..internals import private
from ..keywords.jit_options import JitOptions
from ..keywords.name_check import demand_names
from ..keywords.off_switch import WHY
from ..keywords.offload_support import supported_options
from ..keywords.segment_check import demand_segments, in_terms_of_model
from ..messages import why_plain
from ..messages.branch_residuals import with_branch_advice
from .cached_lowered import restored, store
from .compile_lowered import searching_options
from .lowered import BEFORE_COMPILING, Lowered
from .merged import selects_segments
from .rewrite_within import rewrite_within
from .step_cache import StepCache

_LOG = logging.getLogger("recompute.jax")
# Operations that JAX adds during lowering get the location of the user's line, not of these files.
for _file in (__file__, private.__file__):
    source_info_util.register_exclusion(_file)


def lower_with_marks(traced: jax.stages.Traced) -> jax.stages.Lowered:
    """Lower a step so that its marks and names become custom calls, which the pass `recompute-take-marks` reads."""
    return private.lower_with_rules(traced, WRITTEN_AS_CALLS)


def lower_and_rewrite(name: str, traced: jax.stages.Traced, options: JitOptions) -> Lowered:
    """Lower and rewrite the step. If it cannot be rewritten, return the plain step with the reason.

    Raises:
        ValueError: For a selection that does not apply to the step.
        UnsupportedJax: If the installed JAX lacks a private attribute.
        Refusal, NotProved, ParseError: As `recompute.rewrite` raises them, if the options demand a rewrite (`strict`, a
            budget, a plan, a planner or a pipeline). Otherwise, the message of the error becomes the reason.
    """
    marked = lower_with_marks(traced)
    private.demand_attributes(marked)
    cache = StepCache.of(name, marked, options)
    lowered = restored(name, traced, marked, options, cache)
    if lowered is None:
        lowered = _rewrite_uncached(name, traced, marked, options, cache)
        store(lowered, marked)
    return replace(lowered, unused_marks=unused_marks(traced))


def unchanged_step(name: str, plain: jax.stages.Lowered, options: JitOptions) -> Lowered:
    """Return the plain step, which runs while recomputation is switched off."""
    step = Lowered(name=name, options=options, plain=plain, optimized=plain)
    return replace(step, remarks=(WHY,), plain_reason=why_plain.PlainReason(name, WHY, remedy=""))


def _rewrite_uncached(
    name: str, traced: jax.stages.Traced, marked: jax.stages.Lowered, options: JitOptions, cache: StepCache
) -> Lowered:
    """Rewrite as `lower_and_rewrite` does, but without the cache. `marked`: the step, lowered with its marks."""
    try:
        module = crossing.module_of(marked, name)
    except ParseError as error:
        plain = traced.lower()
        return _refused(Lowered(name=name, options=options, plain=plain, optimized=plain, cache=cache), error)
    options = options.without_names(demand_names(name, module, options.named))
    demand_possible_budget(module, options.budget)
    if options.budget is not None:
        demand_segments(name, module, options.rewrite_without_budget)
    operations = every_operation(module)
    plain = traced.lower() if any(map(is_named_as_mark, operations)) else marked
    options, host_remarks = supported_options(options, private.platforms(plain))
    own_barriers = any(isinstance(op, OptimizationBarrierOp) for op in operations)
    step = Lowered(
        name=name,
        options=options,
        plain=plain,
        optimized=plain,
        own_barriers=own_barriers,
        read=lambda: module,
        cache=cache,
    )
    try:
        with progress(f"{why_plain.PACKAGE}: {name}") as line:
            rewrite_step = _without_budget if options.budget is None else rewrite_within
            lowered = rewrite_step(step, module, line)
    except (Refusal, NotProved) as error:
        if isinstance(error.__cause__, BadSelection):
            raise in_terms_of_model(name, module, error.__cause__) from error
        if isinstance(error, BudgetNotReached):
            return _refused(step, with_branch_advice(error, module))
        return _refused(step, error)
    return replace(lowered, remarks=(*lowered.remarks, *host_remarks))


def _without_budget(step: Lowered, module: ModuleOp, line: ProgressLine) -> Lowered:
    """Rewrite the step without a budget. Raises `Refusal` and `NotProved`."""
    line.span = 0.0, BEFORE_COMPILING
    rewritten = rewrite(module, searching_options(step.options, step.plain))
    line.result = _recomputed(rewritten.copies)
    for remark in rewritten.remarks:
        _LOG.debug("%s: %s", step.name, remark)
    if rewritten.copies:
        optimized = crossing.with_module(step.plain, rewritten.module)
        return replace(step, optimized=optimized, rewritten=rewritten, remarks=rewritten.remarks)
    reason = why_plain.nothing_recomputed(step.name, rewritten.remarks)
    if any(map(is_of_remat, every_operation(module))):
        reason = why_plain.checkpointed(step.name, selects_segments(step.options.rewrite))
    return replace(step, rewritten=rewritten, remarks=rewritten.remarks, plain_reason=reason)


def _refused(step: Lowered, error: Refusal | NotProved | ParseError) -> Lowered:
    """Return the plain step, whose rewrite was refused with this error. If the options demand a rewrite, raise the
    error."""
    if step.options.demands(error):
        raise why_plain.in_jax_terms(step.name, error) from error.__cause__
    remark = Remark(error.operation, error.reason) if isinstance(error, Refusal) else str(error)
    return replace(step, remarks=(remark,), plain_reason=why_plain.refused(step.name, error))


def _recomputed(copies: int) -> str:
    """Describe the result of a rewrite without a budget, for the progress line."""
    return f"{counted_are(copies, 'operation')} recomputed" if copies else "nothing is recomputed"
