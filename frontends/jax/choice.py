"""Choose which step runs: the rewritten one, or the plain one if the compiler measures fewer temporaries for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import jax

from ...driver.api import Rewritten, memory
from ...planning.objective import WORTH_IT
from ...support.diagnostics import Refusal
from . import private, why_plain
from .allocation import temporary_bytes
from .compiler_options import MEASURING

if TYPE_CHECKING:
    from .lowered import Lowered

SURE = 0.15
"""Predicted savings of the peak, as a share, that need no measurement: the error of the XLA:CPU model is smaller."""


class Variant(Enum):
    """The steps that can run; of two whose temporaries differ by less than 1 %, the later one is taken."""

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
    ways = _ways(lowered)
    best, sizes, compiled = _from_cache(lowered, ways) or _measured(lowered, ways)
    rewritten = lowered.merged if best is Variant.MERGED else lowered.rewritten if best is Variant.RECOMPUTED else None
    why = None if rewritten is not None else lowered.why or _why_plain(lowered, best, sizes)
    return CompiledStep(compiled, why, best, rewritten, sizes)


Measured = tuple[Variant, Mapping[Variant, int | None], jax.stages.Compiled]
"""The way that runs, the bytes of temporaries of each that was compiled, and that way compiled."""


def _measured(lowered: Lowered, ways: Sequence[Variant]) -> Measured:
    """Compile the way that is predicted to need least, measure the others, and take the least.

    A way that only has to be measured is compiled without optimizations where that gives the same bytes; it is compiled
    again if it turns out to need least.
    """
    first, *others = ranked(lowered, ways)
    compiled = {first: _compiled(lowered, first)}
    if not others:
        return first, {}, compiled[first]
    options = MEASURING if "cpu" in private.platforms(lowered.plain) else None
    measured = {first: temporary_bytes(compiled[first])}
    measured |= {way: temporary_bytes(_compiled(lowered, way, options)) for way in others}
    sizes = {way: measured[way] for way in Variant if way in measured}
    best = _least(sizes)
    if best not in compiled:
        compiled[best] = _compiled(lowered, best)
        sizes[best] = temporary_bytes(compiled[best])
        best = _least({way: sizes[way] for way in Variant if way in compiled})
    lowered.cache.keep_choice(lowered.options.measure, best.name, {way.name: size for way, size in sizes.items()})
    return best, sizes, compiled[best]


def ranked(lowered: Lowered, ways: Sequence[Variant]) -> list[Variant]:
    """Return the ways to compile, at most two: the one with the lowest prediction, then another that may need less by
    the error of the model. The user's own version is measured rather than a second rewrite, and never runs unmeasured.

    Without barriers of its own a step has a rewrite and the plain form, and the rewrite is predicted to need less.
    """
    if len(ways) <= 2:
        return list(ways)
    predicted = {way: size for way in ways if (size := _predicted_bytes(lowered, way)) is not None}
    first = min(reversed(predicted), key=predicted.__getitem__)
    limit = float("inf") if first is Variant.KEEPING else predicted[first] / (1 - SURE)
    near = [way for way in predicted if way is not first and predicted[way] <= limit]
    return [first, *sorted(near, key=lambda way: (way is not Variant.KEEPING, predicted[way]))[:1]]


def _predicted_bytes(lowered: Lowered, way: Variant) -> int | None:
    """Return the temporaries by the model of XLA:CPU. None for the plain step without its barriers, which needs no less
    than with them."""
    if way is Variant.PLAIN:
        return None
    rewritten = lowered.merged if way is Variant.MERGED else lowered.rewritten if way is Variant.RECOMPUTED else None
    module = lowered.module if rewritten is None else rewritten.module
    assert module is not None, "a step with several ways can be read"
    return max((timeline.peak_bytes for timeline in memory(module, "xla").values()), default=0)


def _from_cache(lowered: Lowered, ways: Sequence[Variant]) -> Measured | None:
    """Return the choice of an earlier process; None without one, and if the compiler measures other bytes now."""
    stored = None if len(ways) == 1 else lowered.cache.choice(lowered.options.measure)
    if stored is None:
        return None
    best, sizes = Variant[stored[0]], {Variant[name]: size for name, size in stored[1].items()}
    compiled = _compiled(lowered, best)
    return (best, sizes, compiled) if temporary_bytes(compiled) == sizes[best] else None


def _ways(lowered: Lowered) -> list[Variant]:
    """Return the steps to compile. If there is only one, nothing is measured."""
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


def _compiled(lowered: Lowered, way: Variant, options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
    if way is Variant.MERGED:
        return lowered.compile_merged(options)
    if way is Variant.PLAIN:
        return lowered.plain_compiled if options is None else lowered.compile_plain(options)
    return lowered.compile(options) if way is Variant.RECOMPUTED else lowered.compile_plain(options, keeping=True)


def _least(sizes: Mapping[Variant, int | None]) -> Variant:
    """Return the way with the fewest bytes; of those as good, the last one. Without sizes the first that is not
    merged."""
    measured = {way: size for way, size in sizes.items() if size is not None}
    if len(measured) < len(sizes):
        return next((way for way in sizes if way is not Variant.MERGED), Variant.MERGED)
    least = min(measured.values())
    return [way for way, size in measured.items() if size * (1 - WORTH_IT) <= least][-1]


def _why_plain(lowered: Lowered, way: Variant, sizes: Mapping[Variant, int | None]) -> str:
    rewritten, plain_bytes = lowered.rewritten, sizes[way]
    rewritten_bytes = sizes.get(Variant.RECOMPUTED, sizes.get(Variant.MERGED))
    assert rewritten is not None and plain_bytes is not None and rewritten_bytes is not None, "both were measured"
    why = why_plain.plain_is_less(lowered.name, plain_bytes, rewritten_bytes, rewritten.remarks)
    if lowered.options.rewrite.strict:
        raise Refusal(rewritten.module, f"{why} (strict)")
    return why
