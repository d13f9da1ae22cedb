"""Choose which step runs: the rewritten one, or the plain one if the compiler measures fewer temporaries for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import jax

from ...driver.api import Rewritten
from ...support.diagnostics import Refusal
from . import warning
from .lowered import Lowered

SURE = 0.15
"""Predicted savings of the peak, as a share, that need no measurement: the error of the XLA:CPU model is smaller."""


class Variant(Enum):
    """The steps that can run; of two with equal temporaries, the later one is taken."""

    MERGED = "the step with its own jax.checkpoint merged back, rewritten"
    RECOMPUTED = "the rewritten step"
    KEEPING = "the plain step, with barriers of its own (jax.checkpoint) that stay"
    PLAIN = "the plain step, just as jax.jit runs it"


@dataclass(frozen=True)
class CompiledStep:
    """The step that runs.

    Attributes:
        compiled: The compiled step.
        why: Why it is the plain step; None if it is a rewritten one.
        way: Which of the steps it is.
        rewritten: The rewrite; None for a plain step.
        sizes: Bytes of temporaries of each compiled step, measured by the compiler; empty if nothing was measured.
    """

    compiled: jax.stages.Compiled
    why: str | None
    way: Variant
    rewritten: Rewritten | None
    sizes: Mapping[Variant, int | None]


def chosen(lowered: Lowered) -> CompiledStep:
    """Compile the step, measure it against the plain one if the option `measure` demands it, and choose.

    Raises `Refusal` with `strict` if the plain step needs fewer temporaries.
    """
    compiled = {way: _compiled(lowered, way) for way in _ways(lowered)}
    sizes = {way: temporary_bytes(step) for way, step in compiled.items()} if len(compiled) > 1 else {}
    best = _least(sizes) if sizes else next(iter(compiled))
    rewritten = lowered.merged if best is Variant.MERGED else lowered.rewritten if best is Variant.RECOMPUTED else None
    why = None if rewritten is not None else lowered.why or _why_plain(lowered, best, sizes)
    return CompiledStep(compiled[best], why, best, rewritten, sizes)


def _ways(lowered: Lowered) -> list[Variant]:
    """The steps to compile. If there is only one, nothing is measured."""
    if lowered.within is not None:
        return [Variant.PLAIN if lowered.rewritten is None else Variant.RECOMPUTED]
    measure, rewritten = lowered.options.measure, lowered.rewritten
    own = lowered.drops_barriers and measure is not False
    plain = [Variant.KEEPING, Variant.PLAIN] if own else [Variant.PLAIN]
    merged = [Variant.MERGED] if own and lowered.merged is not None else []
    if lowered.why is not None or rewritten is None:
        return [*merged, *plain]
    if measure == "auto" and lowered.options.rewrite.selection.segment_budgets:
        # The user has fixed what segments save, so XLA's measurement changes nothing.
        measure = False
    if measure == "auto":
        measure = lowered.drops_barriers or rewritten.predicted_saving < SURE
    return [*merged, Variant.RECOMPUTED, *(plain if measure else ())]


def _compiled(lowered: Lowered, way: Variant) -> jax.stages.Compiled:
    if way is Variant.MERGED:
        return lowered.compile_merged()
    if way is Variant.PLAIN:
        return lowered.plain_compiled
    return lowered.compile() if way is Variant.RECOMPUTED else lowered.compile_plain(keeping=True)


def _least(sizes: Mapping[Variant, int | None]) -> Variant:
    measured = {way: size for way, size in sizes.items() if size is not None}
    if len(measured) < len(sizes):
        return next(way for way in sizes if way is not Variant.MERGED)
    return min(reversed(measured), key=measured.__getitem__)


def _why_plain(lowered: Lowered, way: Variant, sizes: Mapping[Variant, int | None]) -> str:
    rewritten, plain_bytes, rewritten_bytes = lowered.rewritten, sizes[way], sizes[Variant.RECOMPUTED]
    assert rewritten is not None and plain_bytes is not None and rewritten_bytes is not None, "both were measured"
    why = warning.plain_is_less(lowered.name, plain_bytes, rewritten_bytes, warning.last_reason(rewritten.remarks))
    if lowered.options.rewrite.strict:
        raise Refusal(rewritten.module, f"{why} (strict)")
    return why


def temporary_bytes(compiled: jax.stages.Compiled) -> int | None:
    """Bytes of temporaries, measured by the compiler; None if it reports none."""
    analysis = compiled.memory_analysis()
    return None if analysis is None else int(analysis.temp_size_in_bytes)
