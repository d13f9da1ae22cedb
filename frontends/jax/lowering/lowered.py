"""The result of `recompute.jax.jit(…).lower(…)`: the lowered step, which chooses the variant that runs, and reports on
this variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax

from ....support.counted import counted_are
from ....support.progress import progress
from ....support.units import format_bytes
from ..compilation.allocation import temporary_bytes
from ..compilation.variants import CompiledStep, Variant
from ..messages.call_site_warnings import warn
from ..messages.tracebacks import shortened
from ..reports.compare_step import ComparedStep, compare
from ..reports.step_report import Report
from .step_variants import StepVariants
from .variant_choice import choose_variant, compile_variant

BEFORE_COMPILING = 0.5
"""The approximate share of the time that a rewrite without a budget takes, before its result is compiled: 0.38 to 0.65
on two transformers, a loop over layers, and an MLP, on CPU."""


@dataclass(frozen=True, kw_only=True)
class Lowered(StepVariants):
    """The result of `recompute.jax.jit(…).lower(…)`."""

    @cached_property
    def compiled_step(self) -> CompiledStep:
        """The variant that a call runs, compiled once. With `strict`, raises `Refusal` if the plain step needs less
        memory."""
        with progress(f"{self.package}: {self.name}") as line:
            if self.within is None:
                # A step with its own `jax.checkpoint` may be rewritten once more, with the copies merged.
                line.begin("compiling", BEFORE_COMPILING, (1 + BEFORE_COMPILING) / 2 if self.own_barriers else 1.0)
            choice = choose_variant(self, line)
            if self.within is None:
                line.result = _result_of(choice)
            return choice

    @property
    def summary(self) -> str | None:
        """A short description of the result; None before the step is compiled.

        Example: `21.8 MiB of temporaries, 949 operations are recomputed`.
        """
        if self.within is not None:
            return self.within.summary
        choice: CompiledStep | None = vars(self).get("compiled_step")
        return None if choice is None else _result_of(choice)

    @cached_property
    def comparison(self) -> Report:
        """The report on the step, computed once. Reading this property compiles the plain step and the step that
        runs."""
        with progress(f"{self.package}: {self.name}") as line:
            choice = self.compiled_step  # It shows its own phases.
            line.set_phase("comparing with the plain step")
            return compare(
                ComparedStep(
                    name=self.name,
                    module=self.module,
                    lowered=self.plain,
                    compiled=choice.compiled if choice.variant is Variant.PLAIN else self.plain_measured,
                    choice=choice,
                    selection=self.options.rewrite.selection,
                    jit=self.options.jit,
                    remarks=self.remarks,
                    unused_marks=self.unused_marks,
                    within=self.within,
                )
            )

    @property
    def is_surely_plain(self) -> bool:
        """Whether it is known, before anything is compiled, that no variant of the step recomputes anything."""
        return self.plain_reason is not None and not self.own_barriers

    @property
    def warning(self) -> str | None:
        """The text of the warning `NothingSaved` for the variant that runs; None if that variant needs less memory, or
        if there is a budget. Reading this property compiles the step."""
        choice = self.compiled_step
        keeps_saving = choice.variant is Variant.KEEPING and self.drops_barriers
        return None if keeps_saving or self.options.budget is not None else choice.why

    @shortened
    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compile the variant that a call runs, with the compiler options of a call.

        Warns `NothingSaved` as a call does, unless `lower` has given this warning.

        Args:
            compiler_options: Compiler options in addition to those of `recompute.jax.jit`. They do not affect the
                choice of the variant.

        Raises:
            Refusal: With `strict`, if the plain step needs less memory.
        """
        choice = self.compiled_step
        if not self.is_surely_plain and (warning := self.warning) is not None:
            warn(warning)
        return compile_variant(self, choice.variant, compiler_options) if compiler_options else choice.compiled

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the text of the rewritten module, as `jax.stages.Lowered.as_text` does, or the text of the plain step
        if nothing is recomputed.

        For a step with its own `jax.checkpoint`, `compile` may choose another variant.
        """
        return self.optimized.as_text(dialect, debug_info=debug_info)


def _result_of(choice: CompiledStep) -> str:
    """Describe the step that runs: `21.8 MiB of temporaries, 949 operations are recomputed`."""
    measured = temporary_bytes(choice.compiled)
    plain_bytes = choice.sizes.get(Variant.PLAIN)
    before = "" if plain_bytes is None or choice.rewritten is None else f"{format_bytes(plain_bytes)} -> "
    size = "" if measured is None else f"{before}{format_bytes(measured)} of temporaries, "
    if choice.rewritten is None:
        return f"{size}the plain step runs"
    return f"{size}{counted_are(choice.rewritten.copies, 'operation')} recomputed"
