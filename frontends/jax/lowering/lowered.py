"""The lowered and rewritten step of `recompute.jax.jit`. It compiles the plain and the rewritten variant.

JAX's own `jax.stages.Lowered` holds pytrees, donation, shardings and constants. Only the module inside it is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....driver.rewrites.rewritten import Rewritten
from ....options.recompute_options import RecomputeOptions
from ....support.counted import counted_are
from ....support.progress import progress
from ....support.remarks import Remark
from ....support.units import format_bytes
from ..bridge import crossing
from ..compilation.allocation import reported_bytes, temporary_bytes
from ..compilation.budgeted_result import BudgetedCompile
from ..compilation.compiler_options import MEASURING, keeping_barriers, merges_copies
from ..compilation.variants import CompiledStep, Variant
from ..internals import private
from ..keywords.jit_options import JitOptions
from ..messages.call_site_warnings import warn
from ..messages.tracebacks import shortened
from ..reports.compare_step import compare
from ..reports.step_report import Report
from .merged import merged
from .step_cache import StepCache
from .variant_choice import choose_variant, compile_variant

NOT_CACHED = StepCache("")
BEFORE_COMPILING = 0.5
"""The approximate share of the time that a rewrite without a budget takes, before its result is compiled: 0.38 to 0.65
on two transformers, a loop over layers, and an MLP, on CPU."""


def nothing_to_read() -> None:
    """Return None. This is the `read` function of a step that cannot be parsed."""


@dataclass(frozen=True, kw_only=True)
class Lowered:
    """The result of `recompute.jax.jit(…).lower(…)`.

    Attributes:
        name: The name of the step.
        options: The options of the step.
        plain: JAX's own `Lowered` of the plain step.
        optimized: JAX's own `Lowered` of the rewritten step; `plain` itself if nothing is recomputed.
        rewritten: The rewrite of the module; None if it was refused.
        remarks: The remarks of the rewrite, or the reason for its refusal.
        why: The reason that nothing is recomputed, with a remedy; None if operations are recomputed.
        own_barriers: Whether the plain step itself has barriers, such as those of `jax.checkpoint`.
        within: The result of the search for a budget; None without a budget.
        read: A function that returns `module`. It reads the module at the first call.
        cache: The disk cache of the step.
        unused_marks: Remarks on marks that JAX removed because no result of the step depends on their values.
    """

    name: str
    options: JitOptions
    plain: jax.stages.Lowered
    optimized: jax.stages.Lowered
    rewritten: Rewritten | None
    remarks: tuple[Remark | str, ...]
    why: str | None
    own_barriers: bool = False
    within: BudgetedCompile | None = None
    read: Callable[[], ModuleOp | None] = field(default=nothing_to_read, repr=False)
    cache: StepCache = field(default=NOT_CACHED, repr=False)
    unused_marks: tuple[Remark, ...] = ()

    @property
    def module(self) -> ModuleOp | None:
        """The plain step as an xDSL module, with its marks; None if it cannot be parsed."""
        return self.read()

    @property
    def drops_barriers(self) -> bool:
        """Whether `jax.jit` drops the step's own barriers on this platform, and then merges the copies that they
        protect."""
        return self.own_barriers and merges_copies(private.platforms(self.plain))

    @cached_property
    def compiled_step(self) -> CompiledStep:
        """The variant that a call runs, compiled once. With `strict`, raises `Refusal` if the plain step needs less
        memory."""
        with progress(f"recompute.jax: {self.name}") as line:
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
    def plain_compiled(self) -> jax.stages.Compiled:
        """The plain step as `jax.jit` compiles it, compiled once."""
        return self.compile_plain()

    @cached_property
    def plain_measured(self) -> jax.stages.Compiled:
        """The plain step, compiled once to measure its sizes.

        On CPU, it is compiled without optimizations unless it is already compiled. This takes less time, and the sizes
        are the same.
        """
        if self.within is not None and self.within.plain_step is not None:
            return self.within.plain_step
        if "plain_compiled" in vars(self) or "cpu" not in private.platforms(self.plain):
            return self.plain_compiled
        return self.compile_plain(MEASURING)

    @cached_property
    def comparison(self) -> Report:
        """The report on the step, computed once."""
        with progress(f"recompute.jax: {self.name}") as line:
            line.set_phase("compiling the plain step for the report")
            return compare(self)

    @property
    def is_surely_plain(self) -> bool:
        """Whether it is known without compilation that no variant of the step recomputes anything."""
        return self.why is not None and not self.own_barriers

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
            compiler_options: Compiler options in addition to the ones of `recompute.jax.jit`. The variant is chosen
                without them.

        Raises:
            Refusal: With `strict`, if the plain step needs less memory.
        """
        choice = self.compiled_step
        if not self.is_surely_plain and (warning := self.warning) is not None:
            warn(warning)
        return compile_variant(self, choice.variant, compiler_options) if compiler_options else choice.compiled

    def compile_rewritten(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compile the rewritten step, without a choice between variants."""
        return compile_lowered(self.optimized, keeping_options(self.plain, self.options, compiler_options))

    def compile_plain(
        self, compiler_options: Mapping[str, Any] | None = None, *, keeps_barriers: bool = False
    ) -> jax.stages.Compiled:
        """Compile the plain step as `jax.jit` does.

        Args:
            compiler_options: Compiler options in addition to the ones of `recompute.jax.jit`.
            keeps_barriers: Whether to add the compiler options that keep barriers, as for rewritten steps.
        """
        options = keeping_options(self.plain, self.options, compiler_options) if keeps_barriers else compiler_options
        return compile_lowered(self.plain, None if options is None else dict(options))

    @property
    def merged(self) -> Rewritten | None:
        """The rewrite of the step with the copies of its own `jax.checkpoint` merged back; None if that fails."""
        return self._merged[0]

    @cached_property
    def _merged(self) -> tuple[Rewritten | None, jax.stages.Lowered | None]:
        """The rewrite of the step with the copies of its own `jax.checkpoint` merged, and the lowered step that JAX
        compiles for it."""
        if not self.own_barriers:
            return None, None
        options = searching_options(self.options, self.plain)
        return self.cache.merged(self.plain, lambda: self.module, lambda: merged(self.module, options))

    def compile_merged(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compile the step in which the copies of its own `jax.checkpoint` are merged. `merged` must not be None."""
        _, lowered = self._merged
        assert lowered is not None, "there is a merged step"
        return compile_lowered(lowered, keeping_options(self.plain, self.options, compiler_options))

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """Return the text of the rewritten module, as `jax.stages.Lowered.as_text` does, or the text of the plain step
        if nothing is recomputed.

        For a step with its own `jax.checkpoint`, `compile` may choose another variant."""
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


def keeping_options(
    plain: jax.stages.Lowered, options: JitOptions, compiler_options: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the options that keep barriers, merged with the compiler options of `recompute.jax.jit` and of this
    call."""
    return keeping_barriers(private.platforms(plain), options.jit.get("compiler_options"), compiler_options)


def compile_lowered(lowered: Any, compiler_options: dict[str, Any] | None) -> jax.stages.Compiled:
    return lowered.compile(compiler_options)


def searching_options(options: JitOptions, plain: jax.stages.Lowered) -> RecomputeOptions:
    """Return the options of the rewrite. With the option `search`, they make the compiler measure the attempts."""
    if not options.search:
        return options.rewrite
    compiler_options = keeping_options(plain, options, None)

    def temporaries(module: ModuleOp) -> int:
        compiled = compile_lowered(crossing.with_module(plain, module), compiler_options)
        return reported_bytes(module, compiled, "the option search")

    return replace(options.rewrite, attempts=options.search, measure=temporaries, workers=os.cpu_count() or 1)
