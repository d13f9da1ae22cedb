"""Compile the variants of a lowered step: the plain step, its rewrite, and the rewrite after the copies of its own
`jax.checkpoint` are merged into their originals.

JAX's own `jax.stages.Lowered` holds pytrees, donation, shardings and constants. Only the module inside it is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....driver.rewrites.rewritten import Rewritten
from ....support.remarks import Remark
from ..compilation.budgeted_result import BudgetedCompile
from ..compilation.compiler_options import MEASURING, merges_copies
from ..internals import private
from ..keywords.jit_options import JitOptions
from ..messages.why_plain import PACKAGE, PlainReason
from .compile_lowered import compile_lowered, keeping_options, searching_options
from .merged import merged
from .step_cache import StepCache

NOT_CACHED = StepCache("")


def nothing_to_read() -> None:
    """Return None. This is the `read` function of a step that cannot be parsed."""


@dataclass(frozen=True, kw_only=True)
class StepVariants:
    """A lowered step and its rewrite: the variants that can run.

    Attributes:
        name: The name of the step.
        options: The options of the step.
        plain: JAX's own `Lowered` of the plain step.
        optimized: JAX's own `Lowered` of the rewritten step; `plain` itself if nothing is recomputed.
        rewritten: The rewrite of the module; None if it was refused.
        remarks: The remarks of the rewrite, or the reason for its refusal.
        plain_reason: The reason that nothing is recomputed, and a remedy; None if operations are recomputed.
        own_barriers: Whether the plain step itself has barriers, such as those of `jax.checkpoint`.
        within: The result of the search for a budget; None if there is no budget.
        read: A function that returns `module`. It reads the module at the first call.
        cache: The disk cache of the step.
        unused_marks: Remarks on marks that JAX removed because no result of the step depends on their values.
        package: The package that progress lines name.
    """

    name: str
    options: JitOptions
    plain: jax.stages.Lowered
    optimized: jax.stages.Lowered
    rewritten: Rewritten | None = None
    remarks: tuple[Remark | str, ...] = ()
    plain_reason: PlainReason | None = None
    own_barriers: bool = False
    within: BudgetedCompile | None = None
    read: Callable[[], ModuleOp | None] = field(default=nothing_to_read, repr=False)
    cache: StepCache = field(default=NOT_CACHED, repr=False)
    unused_marks: tuple[Remark, ...] = ()
    package: str = PACKAGE

    @property
    def why(self) -> str | None:
        """The message with the reason that nothing is recomputed, and a remedy; None if operations are recomputed."""
        return None if self.plain_reason is None else str(self.plain_reason)

    @property
    def module(self) -> ModuleOp | None:
        """The plain step as an xDSL module, with its marks; None if it cannot be parsed."""
        return self.read()

    @property
    def drops_barriers(self) -> bool:
        """Whether, on this platform, `jax.jit` drops the step's own barriers, and then merges the copies that these
        barriers protect with their originals."""
        return self.own_barriers and merges_copies(private.platforms(self.plain))

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

    def compile_rewritten(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compile the rewritten step, without a choice between variants."""
        return compile_lowered(self.optimized, keeping_options(self.plain, self.options, compiler_options))

    def compile_plain(
        self, compiler_options: Mapping[str, Any] | None = None, *, keeps_barriers: bool = False
    ) -> jax.stages.Compiled:
        """Compile the plain step as `jax.jit` does.

        Args:
            compiler_options: Compiler options in addition to those of `recompute.jax.jit`.
            keeps_barriers: Whether to add the compiler options that keep barriers, as for rewritten steps.
        """
        options = keeping_options(self.plain, self.options, compiler_options) if keeps_barriers else compiler_options
        return compile_lowered(self.plain, None if options is None else dict(options))

    @property
    def merged(self) -> Rewritten | None:
        """The rewrite of the step after the copies that its own `jax.checkpoint` made are merged into their originals;
        None if that fails."""
        return self._merged[0]

    @cached_property
    def _merged(self) -> tuple[Rewritten | None, jax.stages.Lowered | None]:
        """The rewrite that `merged` returns, and the lowered step that JAX compiles for it."""
        if not self.own_barriers:
            return None, None
        options = searching_options(self.options, self.plain)
        return self.cache.merged(self.plain, lambda: self.module, lambda: merged(self.module, options))

    def compile_merged(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compile the rewrite that `merged` returns, which must not be None."""
        _, lowered = self._merged
        assert lowered is not None, "there is a merged step"
        return compile_lowered(lowered, keeping_options(self.plain, self.options, compiler_options))
