"""Which is run: the rewritten step, or the plain one where the compiler says that it needs less."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from ...dialects.diagnostics import Refusal
from ...driver.api import Rewritten
from . import warning
from .lowered import Lowered

SURE = 0.15
"""Savings of the peak that are predicted to be at least this large are real: the model of XLA:CPU errs by less."""


@dataclass(frozen=True)
class Choice:
    """What is run, and why it is the plain step; None where it is the rewritten one."""

    compiled: jax.stages.Compiled
    why: str | None


def chosen(lowered: Lowered) -> Choice:
    """Compiled, and measured against the plain step where `measure` says so.

    Raises `Refusal` with `strict` where the plain one needs less.
    """
    done, compiled = lowered.rewritten, lowered.compile()
    if done is None or lowered.why is not None:
        return Choice(compiled, lowered.why)
    if not _is_measured(lowered.options.measure, done):
        return Choice(compiled, None)
    plain = lowered.compile_plain()
    before, after = temporary_bytes(plain), temporary_bytes(compiled)
    if before is None or after is None or after < before:
        return Choice(compiled, None)
    why = warning.plain_is_less(lowered.name, before, after, warning.last_reason(done.remarks))
    if lowered.options.request.strict:
        raise Refusal(done.module, f"{why} (strict)")
    return Choice(plain, why)


def predicted_saving(done: Rewritten) -> float:
    """The share of the peak that is saved, by the model of XLA:CPU; of several functions the least."""
    pairs = done.memory("xla").values()
    return min((1 - after.peak_bytes / max(before.peak_bytes, 1) for before, after in pairs), default=0.0)


def temporary_bytes(compiled: jax.stages.Compiled) -> int | None:
    """What the compiler says; None where it says nothing."""
    analysis = compiled.memory_analysis()
    return None if analysis is None else int(analysis.temp_size_in_bytes)


def _is_measured(measure: bool | str, done: Rewritten) -> bool:
    return measure if isinstance(measure, bool) else predicted_saving(done) < SURE
