"""Which is run: the rewritten step, or the plain one where the compiler says that it needs less."""

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
"""Savings of the peak that are predicted to be at least this large are real: the model of XLA:CPU errs by less."""


class Way(Enum):
    """What can be run; of two that need the same, the later is taken."""

    MERGED = "the step with its own jax.checkpoint merged back, rewritten"
    RECOMPUTED = "the rewritten step"
    KEEPING = "the plain step, with barriers of its own (jax.checkpoint) that stay"
    PLAIN = "the plain step, just as jax.jit runs it"


@dataclass(frozen=True)
class Choice:
    """What is run, and why it is the plain step; None where it is a rewritten one. `done`: what was done to it then.

    sizes: bytes of temporaries of each way that was compiled, by the compiler; empty where nothing was measured.
    """

    compiled: jax.stages.Compiled
    why: str | None
    way: Way
    done: Rewritten | None
    sizes: Mapping[Way, int | None]


def chosen(lowered: Lowered) -> Choice:
    """Compiled, and measured against the plain step where `measure` says so.

    Raises `Refusal` with `strict` where the plain one needs less.
    """
    compiled = {way: _compiled(lowered, way) for way in _ways(lowered)}
    sizes = {way: temporary_bytes(one) for way, one in compiled.items()} if len(compiled) > 1 else {}
    best = _least(sizes) if sizes else next(iter(compiled))
    done = lowered.merged if best is Way.MERGED else lowered.rewritten if best is Way.RECOMPUTED else None
    why = None if done is not None else lowered.why or _why_plain(lowered, best, sizes)
    return Choice(compiled[best], why, best, done, sizes)


def _ways(lowered: Lowered) -> list[Way]:
    """What is compiled. With one nothing is measured."""
    if lowered.within is not None:
        return [Way.PLAIN if lowered.rewritten is None else Way.RECOMPUTED]
    measure, done = lowered.options.measure, lowered.rewritten
    own = lowered.drops_barriers and measure is not False
    plain = [Way.KEEPING, Way.PLAIN] if own else [Way.PLAIN]
    merged = [Way.MERGED] if own and lowered.merged is not None else []
    if lowered.why is not None or done is None:
        return [*merged, *plain]
    if measure == "auto" and lowered.options.rewrite.selection.segment_budgets:
        # What segments save is what was asked for, whatever XLA makes of it.
        measure = False
    if measure == "auto":
        measure = lowered.drops_barriers or done.predicted_saving < SURE
    return [*merged, Way.RECOMPUTED, *(plain if measure else ())]


def _compiled(lowered: Lowered, way: Way) -> jax.stages.Compiled:
    if way is Way.MERGED:
        return lowered.compile_merged()
    if way is Way.PLAIN:
        return lowered.plain_compiled
    return lowered.compile() if way is Way.RECOMPUTED else lowered.compile_plain(keeping=True)


def _least(sizes: Mapping[Way, int | None]) -> Way:
    known = {way: size for way, size in sizes.items() if size is not None}
    if len(known) < len(sizes):
        return next(way for way in sizes if way is not Way.MERGED)
    return min(reversed(known), key=known.__getitem__)


def _why_plain(lowered: Lowered, way: Way, sizes: Mapping[Way, int | None]) -> str:
    done, plain, rewritten = lowered.rewritten, sizes[way], sizes[Way.RECOMPUTED]
    assert done is not None and plain is not None and rewritten is not None, "both were measured"
    why = warning.plain_is_less(lowered.name, plain, rewritten, warning.last_reason(done.remarks))
    if lowered.options.rewrite.strict:
        raise Refusal(done.module, f"{why} (strict)")
    return why


def temporary_bytes(compiled: jax.stages.Compiled) -> int | None:
    """What the compiler says; None where it says nothing."""
    analysis = compiled.memory_analysis()
    return None if analysis is None else int(analysis.temp_size_in_bytes)
