"""Choose the variant of a step that runs: the rewritten step, or the plain step if it needs fewer bytes of temporaries.

The compiler reports these bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from ....driver.api import memory
from ....driver.rewrites.rewritten import Rewritten
from ....planning.objective import is_worth_it
from ....support.diagnostics import strict_refusal
from ....support.progress import ProgressLine
from ..compilation.allocation import device_count, temporary_bytes
from ..compilation.compiler_options import MEASURING
from ..compilation.variants import CompiledStep, Variant
from ..internals import private
from ..messages import why_plain
from .step_variants import StepVariants

LARGE_SAVING = 0.15
"""If the predicted saving exceeds this share of the peak, the plain step is not measured, because the error of the
model is smaller than the saving. `_is_doubtful` describes the exceptions."""
SMALL_STEP = 2**20
"""Bytes of temporaries up to which the error of the model may exceed `LARGE_SAVING`, because XLA aligns every
buffer."""


def choose_variant(lowered: StepVariants, line: ProgressLine | None = None) -> CompiledStep:
    """Compile the variants that the option `measure` requires, and choose the variant that runs.

    Args:
        lowered: The step.
        line: The progress line that counts the compilations, if one is shown.

    Raises:
        Refusal: With the option `strict`, if the plain step needs fewer bytes of temporaries.
    """
    variants = _variants(lowered)
    line = line or ProgressLine(lowered.name)
    best, sizes, compiled = _from_cache(lowered, variants) or _measure(lowered, variants, line)
    rewritten = _rewrite_of(lowered, best)
    reason = None if rewritten is not None else lowered.plain_reason or _plain_reason(lowered, best, sizes)
    return CompiledStep(compiled, reason, best, rewritten, sizes)


def _rewrite_of(lowered: StepVariants, variant: Variant) -> Rewritten | None:
    """Return the rewrite that a variant runs; None for a plain variant."""
    if variant is Variant.MERGED:
        return lowered.merged
    return lowered.rewritten if variant is Variant.RECOMPUTED else None


Measured = tuple[Variant, Mapping[Variant, int | None], jax.stages.Compiled]
"""The variant that runs, the bytes of temporaries of each compiled variant, and the compiled step that runs."""


def _measure(lowered: StepVariants, variants: Sequence[Variant], line: ProgressLine) -> Measured:
    """Compile the variant with the lowest predicted memory, measure the others, and choose the smallest.

    A variant that is only measured is compiled without optimizations if they do not affect its memory. If it is the
    smallest variant, it is recompiled with optimizations.
    """
    first, *others = rank_variants(lowered, variants)
    begin = line.share
    if others:
        line.begin(f"compiling 1 of {1 + len(others)}", begin, 1.0)
    compiled = {first: _compile(lowered, first)}
    if variants == [Variant.RECOMPUTED] and _may_measure(lowered) and _is_doubtful(lowered, compiled[first]):
        others = [Variant.PLAIN]
    if not others:
        return first, {}, compiled[first]
    line.begin("compiling 2 of 2", (begin + 1.0) / 2, 1.0)
    options = MEASURING if "cpu" in private.platforms(lowered.plain) else None
    measured = {first: temporary_bytes(compiled[first])}
    measured |= {variant: temporary_bytes(_compile(lowered, variant, options)) for variant in others}
    sizes = {variant: measured[variant] for variant in Variant if variant in measured}
    best = _smallest(sizes)
    if best not in compiled:
        line.set_phase("compiling the smaller one with optimizations")
        compiled[best] = _compile(lowered, best)
        sizes[best] = temporary_bytes(compiled[best])
        best = _smallest({variant: sizes[variant] for variant in Variant if variant in compiled})
    lowered.cache.store_choice(
        lowered.options.measure, best.name, {variant.name: size for variant, size in sizes.items()}
    )
    return best, sizes, compiled[best]


def rank_variants(lowered: StepVariants, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants to compile, at most two: the variant with the lowest prediction, and another variant that may
    be smaller within the error of the model.

    As the second variant, the step with the user's own `jax.checkpoint` is preferred to another rewrite. Unless
    `measure` is False, this step never runs without a measurement. A step without barriers of its own has at most two
    variants: the rewrite, which is predicted to be smaller, and the plain step.
    """
    if Variant.KEEPING not in variants or len(variants) == 1:
        return list(variants)
    predicted = {variant: size for variant in variants if (size := _predicted_bytes(lowered, variant)) is not None}
    first = min(reversed(predicted), key=predicted.__getitem__)
    limit = float("inf") if first is Variant.KEEPING else predicted[first] / (1 - LARGE_SAVING)
    near = [variant for variant in predicted if variant is not first and predicted[variant] <= limit]
    return [first, *sorted(near, key=lambda variant: (variant is not Variant.KEEPING, predicted[variant]))[:1]]


def _predicted_bytes(lowered: StepVariants, variant: Variant) -> int | None:
    """Return a variant's temporaries in bytes, as the XLA:CPU model predicts them. Return None for the plain step
    without its barriers, which needs at least as much memory as the plain step with barriers.
    """
    if variant is Variant.PLAIN:
        return None
    rewritten = _rewrite_of(lowered, variant)
    module = lowered.module if rewritten is None else rewritten.module
    assert module is not None, "a step with several variants can be read"
    return max((timeline.peak_bytes for timeline in memory(module, "xla").values()), default=0)


def _from_cache(lowered: StepVariants, variants: Sequence[Variant]) -> Measured | None:
    """Return the stored choice; None if no choice is stored, or if the compiler now reports a different size."""
    is_measured = len(variants) > 1 or (variants == [Variant.RECOMPUTED] and _may_measure(lowered))
    stored = lowered.cache.choice(lowered.options.measure) if is_measured else None
    if stored is None:
        return None
    best, sizes = Variant[stored[0]], {Variant[name]: size for name, size in stored[1].items()}
    compiled = _compile(lowered, best)
    return (best, sizes, compiled) if temporary_bytes(compiled) == sizes[best] else None


def _variants(lowered: StepVariants) -> list[Variant]:
    """Return the variants that can run. If there is only one, nothing is measured."""
    if lowered.within is not None:
        plain = Variant.KEEPING if lowered.within.is_keeping else Variant.PLAIN
        return [plain if lowered.rewritten is None else Variant.RECOMPUTED]
    measure, rewritten = lowered.options.measure, lowered.rewritten
    is_measured = measure is not False
    plain = [Variant.PLAIN]
    if lowered.own_barriers:
        # If `jax.jit` keeps barriers, the two plain variants are the same program. Without a measurement, the step
        # keeps its barriers, whose purpose is to reduce memory.
        plain = [Variant.KEEPING, Variant.PLAIN] if lowered.drops_barriers and is_measured else [Variant.KEEPING]
    merged = [Variant.MERGED] if is_measured and lowered.own_barriers and lowered.merged is not None else []
    if lowered.plain_reason is not None or rewritten is None:
        return [*merged, *plain]
    if measure == "auto":
        measure = _may_measure(lowered) and (lowered.own_barriers or rewritten.predicted_saving < LARGE_SAVING)
    return [*merged, Variant.RECOMPUTED, *(plain if measure else ())]


def _may_measure(lowered: StepVariants) -> bool:
    """Return whether the plain step may be compiled and run in place of the rewritten step: there is no budget, and
    `measure` is "auto"."""
    has_budget = lowered.within is not None or bool(lowered.options.rewrite.selection.segment_budgets)
    return lowered.options.measure == "auto" and not has_budget


def _is_doubtful(lowered: StepVariants, compiled: jax.stages.Compiled) -> bool:
    """Return whether the memory reduction that is predicted for a compiled rewritten step may be wrong.

    On several devices, the reduction is always doubtful: the model counts whole arrays, but a device holds only its
    shards of sharded arrays, so that unsharded arrays may make up most of its peak. For a small step, the reduction is
    doubtful if the compiled size does not confirm it.
    """
    size = temporary_bytes(compiled)
    if size is None or lowered.module is None:
        return False
    if device_count(compiled) > 1:
        return True
    if size > SMALL_STEP:
        return False
    plain = max((timeline.peak_bytes for timeline in memory(lowered.module, "xla").values()), default=0)
    return size > (1 - LARGE_SAVING) * plain


def _compile(lowered: StepVariants, variant: Variant, options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
    if lowered.within is not None and options is None:
        return lowered.within.compiled
    if variant is Variant.PLAIN or (variant is Variant.KEEPING and not lowered.drops_barriers):
        return lowered.plain_compiled if options is None else lowered.plain_measured
    return compile_variant(lowered, variant, options)


def compile_variant(lowered: StepVariants, variant: Variant, options: Mapping[str, Any] | None) -> jax.stages.Compiled:
    """Compile a variant of the step. `options`: compiler options in addition to those of the variant."""
    if variant is Variant.MERGED:
        return lowered.compile_merged(options)
    if variant is Variant.RECOMPUTED:
        return lowered.compile_rewritten(options)
    return lowered.compile_plain(options, keeps_barriers=variant is Variant.KEEPING)


def _smallest(sizes: Mapping[Variant, int | None]) -> Variant:
    """Return the last variant that needs less than 1 % more memory than the smallest variant.

    If a size is unknown, return the first variant in which no copies of the step's own `jax.checkpoint` are merged.
    """
    measured = {variant: size for variant, size in sizes.items() if size is not None}
    if len(measured) < len(sizes):
        return next((variant for variant in sizes if variant is not Variant.MERGED), Variant.MERGED)
    least = min(measured.values())
    return [variant for variant, size in measured.items() if not is_worth_it(size, least)][-1]


def _plain_reason(
    lowered: StepVariants, variant: Variant, sizes: Mapping[Variant, int | None]
) -> why_plain.PlainReason:
    rewritten, plain_bytes = lowered.rewritten, sizes[variant]
    rewritten_bytes = sizes.get(Variant.RECOMPUTED, sizes.get(Variant.MERGED))
    assert rewritten is not None and plain_bytes is not None and rewritten_bytes is not None, "both were measured"
    reason = why_plain.plain_is_smaller(lowered.name, plain_bytes, rewritten_bytes, rewritten.remarks)
    if lowered.options.rewrite.strict:
        raise strict_refusal(rewritten.module, str(reason))
    return reason
