"""Which is run: the rewritten step, or the plain one where the compiler says that it needs less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import jax

from ...dialects.diagnostics import Refusal
from ...driver.api import Rewritten
from . import warning
from .lowered import Lowered

SURE = 0.15
"""Savings of the peak that are predicted to be at least this large are real: the model of XLA:CPU errs by less."""


class Way(Enum):
    """What can be run, the most promising first; of two that need the same, the later is taken."""

    RECOMPUTED = "the rewritten step"
    KEEPING = "the plain step, with barriers of its own (jax.checkpoint) that stay"
    PLAIN = "the plain step, just as jax.jit runs it"


@dataclass(frozen=True)
class Choice:
    """What is run, and why it is the plain step; None where it is the rewritten one."""

    compiled: jax.stages.Compiled
    why: str | None


def chosen(lowered: Lowered) -> Choice:
    """Compiled, and measured against the plain step where `measure` says so.

    Raises `Refusal` with `strict` where the plain one needs less.
    """
    compiled = {way: _compiled(lowered, way) for way in _ways(lowered)}
    sizes = {way: temporary_bytes(one) for way, one in compiled.items()} if len(compiled) > 1 else {}
    best = _least(sizes) if sizes else next(iter(compiled))
    if best is Way.RECOMPUTED or lowered.why is not None:
        return Choice(compiled[best], lowered.why)
    return Choice(compiled[best], _why_plain(lowered, sizes[best], sizes[Way.RECOMPUTED]))


def _ways(lowered: Lowered) -> list[Way]:
    """What is compiled. With one nothing is measured."""
    measure, done = lowered.options.measure, lowered.rewritten
    plain = [Way.KEEPING, Way.PLAIN] if lowered.drops_barriers and measure is not False else [Way.PLAIN]
    if lowered.why is not None or done is None:
        return plain
    if measure == "auto":
        measure = lowered.drops_barriers or predicted_saving(done) < SURE
    return [Way.RECOMPUTED, *(plain if measure else ())]


def _compiled(lowered: Lowered, way: Way) -> jax.stages.Compiled:
    return lowered.compile() if way is Way.RECOMPUTED else lowered.compile_plain(keeping=way is Way.KEEPING)


def _least(sizes: Mapping[Way, int | None]) -> Way:
    known = {way: size for way, size in sizes.items() if size is not None}
    if len(known) < len(sizes):
        return next(iter(sizes))
    return min(reversed(known), key=known.__getitem__)


def _why_plain(lowered: Lowered, plain: int | None, rewritten: int | None) -> str:
    done = lowered.rewritten
    assert done is not None and plain is not None and rewritten is not None, "both were measured"
    why = warning.plain_is_less(lowered.name, plain, rewritten, warning.last_reason(done.remarks))
    if lowered.options.request.strict:
        raise Refusal(done.module, f"{why} (strict)")
    return why


def predicted_saving(done: Rewritten) -> float:
    """The share of the peak that is saved, by the model of XLA:CPU; of several functions the least."""
    pairs = done.memory("xla").values()
    return min((1 - after.peak_bytes / max(before.peak_bytes, 1) for before, after in pairs), default=0.0)


def temporary_bytes(compiled: jax.stages.Compiled) -> int | None:
    """What the compiler says; None where it says nothing."""
    analysis = compiled.memory_analysis()
    return None if analysis is None else int(analysis.temp_size_in_bytes)
