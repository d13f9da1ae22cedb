"""Store lowered and rewritten steps in the disk cache, and restore them without a rewrite."""

from __future__ import annotations

from dataclasses import replace
from functools import cache as cache_of_call

import jax
from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from ....driver.cache.stored_rewrite import RewriteRecord
from ....support.progress import progress
from ..bridge import crossing
from ..compilation.budgeted_result import record_of, result_of_record
from ..internals import private
from ..keywords.jit_options import JitOptions
from ..keywords.offload_support import supported_options
from ..messages import why_plain
from .compile_lowered import compile_lowered, keeping_options
from .lowered import Lowered
from .step_cache import StepCache, StoredStep

# Operations that JAX adds during lowering get the location of the user's line, not of this file.
source_info_util.register_exclusion(__file__)


def store(lowered: Lowered, marked: jax.stages.Lowered) -> None:
    """Store the step in its cache, unless a time limit ended its search. `marked`: the step, lowered with its marks."""
    cache = lowered.cache
    if cache.key is None or (lowered.within is not None and not lowered.within.is_complete):
        return
    stored = _stored(lowered, marked)
    cache.store_step(stored)
    if lowered.within is not None and (module := lowered.read()) is not None:
        cache.without_lines(module).store_step(replace(stored, bytecode=b""))


def restored(
    name: str, traced: jax.stages.Traced, marked: jax.stages.Lowered, options: JitOptions, cache: StepCache
) -> Lowered | None:
    """Restore the step from its cache. Return None if it is not stored, or if its size differs from the size that the
    budget search measured.

    Args:
        name: The name of the step.
        traced: The step, traced.
        marked: The step, lowered with its marks.
        options: The options of the step.
        cache: The cache of the step.
    """
    if (stored := cache.step()) is None:
        return None

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
        with progress(f"{why_plain.PACKAGE}: {name}") as line:
            line.set_phase("compiling the stored step")
            result = result_of_record(stored.within, rewritten, compile_lowered(optimized, keeping))
            if result is None:
                return None
            line.result = result.summary
    remarks = (*(() if rewritten is None else rewritten.remarks), *stored.remarks)
    return Lowered(
        name=name,
        options=options,
        plain=plain,
        optimized=optimized,
        rewritten=rewritten,
        remarks=remarks,
        plain_reason=stored.plain_reason,
        own_barriers=stored.own_barriers,
        within=result,
        read=read,
        cache=cache,
    )


def _stored(lowered: Lowered, marked: jax.stages.Lowered) -> StoredStep:
    """Return a step in the form that the cache stores. `marked`: the step, lowered with its marks."""
    rewritten = lowered.rewritten
    return StoredStep(
        has_marks=lowered.plain is not marked,
        own_barriers=lowered.own_barriers,
        plain_reason=lowered.plain_reason,
        rewritten=None if rewritten is None else RewriteRecord.of(rewritten),
        remarks=lowered.remarks[0 if rewritten is None else len(rewritten.remarks) :],
        within=None if lowered.within is None else record_of(lowered.within),
        bytecode=b"" if lowered.optimized is lowered.plain else lowered.cache.bytecode_of(lowered.optimized),
    )
