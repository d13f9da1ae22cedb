"""Rewrite a step that JAX has lowered.

`jax.stages.Lowered` -> StableHLO with locations -> `recompute.rewrite` -> `jax.stages.Lowered` of the new module

JAX's own object keeps pytrees, donation, shardings and constants; only the module inside it is replaced.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache as cache_of_call
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from ...dialects.marks import is_named_as_mark
from ...dialects.stablehlo.control import OptimizationBarrierOp
from ...driver.api import Rewritten, rewrite
from ...driver.cache import record_of
from ...driver.verified import NotProved
from ...options.recompute_options import RecomputeOptions
from ...options.selection import BadSelection
from ...support.diagnostics import Refusal, Remark
from ...support.operations import every_operation
from ...support.progress import ProgressLine, progress
from ...support.units import format_bytes
from . import crossing, private, warning
from .budget import BudgetedCompile, Compilers, record_of_within, within, within_from
from .compiler_options import keeping_barriers
from .disabled import WHY
from .host_memory import supported_options
from .marks import WRITTEN_AS_CALLS, demand_names
from .merged import merged
from .options import Options
from .step_cache import StepCache, StoredStep

if TYPE_CHECKING:
    from .choice import CompiledStep

_LOG = logging.getLogger("recompute.jax")
# Operations that JAX adds while lowering get the location of the user's line, not of these files.
for _file in (__file__, private.__file__):
    source_info_util.register_exclusion(_file)


NOT_CACHED = StepCache("")


def _nothing_to_read() -> None:
    """Return None: the step cannot be parsed."""


@dataclass(frozen=True)
class Lowered:
    """The result of `recompute.jax.jit(…).lower(…)`.

    Attributes:
        name: The name of the step.
        options: The options of the rewrite.
        plain: JAX's own `Lowered`.
        less: The one that is compiled; `plain` itself if nothing is recomputed.
        rewritten: The rewrite of the module; None if it was refused.
        remarks: Those of the rewrite, or the reason that there is none.
        why: One sentence on why nothing is recomputed; None if something is.
        drops_barriers: The plain step has its own barriers, as of `jax.checkpoint`, and `jax.jit` drops them here.
        within: How a budget was kept; None without a budget.
        read: Returns `module`, which is read when it is first used.
        cache: The disk cache of the step.
    """

    name: str
    options: Options
    plain: jax.stages.Lowered
    less: jax.stages.Lowered
    rewritten: Rewritten | None
    remarks: tuple[Remark | str, ...]
    why: str | None
    drops_barriers: bool = False
    within: BudgetedCompile | None = None
    read: Callable[[], ModuleOp | None] = field(default=_nothing_to_read, repr=False)
    cache: StepCache = field(default=NOT_CACHED, repr=False)

    @property
    def module(self) -> ModuleOp | None:
        """The plain step as an xDSL module, with its marks; None if it cannot be parsed."""
        return self.read()

    @cached_property
    def choice(self) -> CompiledStep:
        """The step that a call runs, compiled once. Raises `Refusal` with `strict` if the plain step needs less."""
        from .choice import chosen  # Not at the top: that module imports this one.

        with progress(f"recompute.jax: {self.name}") as line:
            line.at("compiling")
            return chosen(self)

    @cached_property
    def plain_compiled(self) -> jax.stages.Compiled:
        """The plain step as `jax.jit` compiles it, compiled once."""
        return self.compile_plain()

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compile the rewritten step; if nothing is recomputed, the plain one, just as `jax.jit` does."""
        if self.within is not None and compiler_options is None:
            return self.within.compiled
        if self.why is not None:
            return self.compile_plain(compiler_options)
        return _compile(self.less, _keeping_options(self.plain, self.options, compiler_options))

    def compile_plain(
        self, compiler_options: Mapping[str, Any] | None = None, *, keeping: bool = False
    ) -> jax.stages.Compiled:
        """Compile the plain step as `jax.jit` does. `keeping`: with the options that keep barriers, as the rewritten
        step is compiled."""
        options = _keeping_options(self.plain, self.options, compiler_options) if keeping else compiler_options
        return _compile(self.plain, None if options is None else dict(options))

    @property
    def merged(self) -> Rewritten | None:
        """The step with the copies of its own `jax.checkpoint` merged back, then rewritten; None if not possible."""
        return self._merged[0]

    @cached_property
    def _merged(self) -> tuple[Rewritten | None, jax.stages.Lowered | None]:
        """The merged step, and as JAX compiles it."""
        if not self.drops_barriers:
            return None, None
        options = _searching_options(self.options, self.plain)
        return self.cache.merged(self.plain, lambda: self.module, lambda: merged(self.module, options))

    def compile_merged(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """Compile the merged step. `merged` must not be None."""
        _, less = self._merged
        assert less is not None, "there is a merged step"
        return _compile(less, _keeping_options(self.plain, self.options, compiler_options))

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module that is compiled, as `jax.stages.Lowered.as_text` prints it."""
        return self.less.as_text(dialect, debug_info=debug_info)


def _keeping_options(
    plain: jax.stages.Lowered, options: Options, compiler_options: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Compiler options that keep barriers, merged with those of `jit` and of the call."""
    return keeping_barriers(private.platforms(plain), options.jit.get("compiler_options"), compiler_options)


def _compile(lowered: Any, compiler_options: dict[str, Any] | None) -> jax.stages.Compiled:
    return lowered.compile(compiler_options)


def lowered_for_us(traced: jax.stages.Traced) -> jax.stages.Lowered:
    """Lower with mark primitives emitted as custom calls."""
    return private.lower(traced, WRITTEN_AS_CALLS)


def rewritten(name: str, traced: jax.stages.Traced, options: Options) -> Lowered:
    """Lower and rewrite the step. If it cannot be rewritten, return the plain step with the reason in `why`.

    Raises:
        ValueError: For a selection that does not fit the step.
        UnsupportedJax: If the installed JAX lacks a private attribute.
        Refusal, NotProved, ParseError: From `recompute.rewrite`, with `strict`, a budget, a plan, a planner or a
            pipeline; otherwise they become the reason.
    """
    marked = lowered_for_us(traced)
    private.check(marked)
    cache = StepCache.of(name, marked, options)
    if (stored := cache.step()) is not None:
        lowered = _from_cache(name, traced, marked, options, cache, stored)
        if lowered is not None:
            return lowered
    lowered = _rewritten(name, traced, marked, options, cache)
    if cache.key is not None and (lowered.within is None or lowered.within.is_complete):
        cache.keep_step(_stored(lowered, marked))
    return lowered


def _rewritten(
    name: str, traced: jax.stages.Traced, marked: jax.stages.Lowered, options: Options, cache: StepCache
) -> Lowered:
    """As `rewritten`, without the cache. `marked`: the step as it was lowered with marks."""
    try:
        module = crossing.module_of(marked, name)
    except ParseError as error:
        return _PlainStep(name, options, traced.lower(), False, None, cache).because(error)
    demand_names(name, module, options.named)
    plain = traced.lower() if any(map(is_named_as_mark, every_operation(module))) else marked
    has_barriers = any(isinstance(op, OptimizationBarrierOp) for op in every_operation(module))
    drops_barriers = has_barriers and "cpu" in private.platforms(plain)
    options, host_remarks = supported_options(options, private.platforms(plain))
    try:
        with progress(f"recompute.jax: {name}") as line:
            if options.budget is not None:
                step = _PlainStep(name, options, plain, drops_barriers, module, cache)
                lowered = _within(step, options.budget, module, line)
                return replace(lowered, remarks=(*lowered.remarks, *host_remarks))
            rewritten = rewrite(module, _searching_options(options, plain))
            line.result = f"{rewritten.copies or 'no'} operations are computed again"
        for remark in rewritten.remarks:
            _LOG.debug("%s: %s", name, remark)
    except (Refusal, NotProved) as error:
        if isinstance(error.__cause__, BadSelection):
            raise BadSelection(f"{name}: {error.__cause__}") from error
        return _PlainStep(name, options, plain, drops_barriers, module, cache).because(error)
    why, less = None, plain
    if rewritten.copies:
        less = crossing.with_module(plain, rewritten.module)
    else:
        why = warning.nothing_recomputed(name, warning.why_nothing(rewritten.remarks))
    remarks = (*rewritten.remarks, *host_remarks)
    return Lowered(
        name, options, plain, less, rewritten, remarks, why, drops_barriers, read=lambda: module, cache=cache
    )


def not_rewritten(name: str, plain: jax.stages.Lowered, options: Options) -> Lowered:
    """The plain step, where recomputation is switched off."""
    return Lowered(name, options, plain, plain, None, (WHY,), f"{name}: the plain step runs: {WHY}")


def _within(step: _PlainStep, budget: str, module: ModuleOp, line: ProgressLine) -> Lowered:
    """The step rewritten within the budget. Raises `Refusal` if no candidate keeps it."""
    name, options, plain, cache = step.name, step.options, step.plain, step.cache
    on_cpu = "cpu" in private.platforms(plain)
    result = within(
        name,
        module,
        options.rewrite,
        budget,
        Compilers(
            lambda: _compile(plain, None),
            lambda rewritten, measuring: _compile(
                crossing.with_module(plain, rewritten), _keeping_options(plain, options, measuring if on_cpu else None)
            ),
        ),
        line,
    )
    why, less, remarks = None, plain, tuple[Remark | str, ...]((result.nothing_to_do,))
    line.result = _result_of(result)
    if (rewritten := result.rewritten) is None:
        why = warning.nothing_recomputed(name, result.nothing_to_do)
    else:
        less, remarks = crossing.with_module(plain, rewritten.module), rewritten.remarks
    return Lowered(name, options, plain, less, rewritten, remarks, why, within=result, read=lambda: module, cache=cache)


def _stored(lowered: Lowered, marked: jax.stages.Lowered) -> StoredStep:
    """The content of the cache for this step. `marked`: as it was lowered with marks."""
    rewritten = lowered.rewritten
    return StoredStep(
        has_marks=lowered.plain is not marked,
        drops_barriers=lowered.drops_barriers,
        why=lowered.why,
        rewritten=None if rewritten is None else record_of(rewritten),
        remarks=lowered.remarks[0 if rewritten is None else len(rewritten.remarks) :],
        within=None if lowered.within is None else record_of_within(lowered.within),
        less=b"" if lowered.less is lowered.plain else lowered.cache.bytecode_of(lowered.less),
    )


def _from_cache(
    name: str,
    traced: jax.stages.Traced,
    marked: jax.stages.Lowered,
    options: Options,
    cache: StepCache,
    stored: StoredStep,
) -> Lowered | None:
    """The step as it was stored; None if the compiler measures other bytes than a budget was kept with."""

    @cache_of_call
    def read() -> ModuleOp | None:
        try:
            return crossing.module_of(marked, name)
        except ParseError:
            return None

    plain = traced.lower() if stored.has_marks else marked
    options, _ = supported_options(options, private.platforms(plain))
    less = private.with_module(plain, private.module_of_bytecode(stored.less)) if stored.less else plain
    rewritten = None if stored.rewritten is None else cache.stored(stored.rewritten, less, read)
    result = None
    if stored.within is not None:
        keeping = None if rewritten is None else _keeping_options(plain, options, None)
        result = within_from(stored.within, rewritten, _compile(less, keeping))
        if result is None:
            return None
    remarks = (*(() if rewritten is None else rewritten.remarks), *stored.remarks)
    return Lowered(
        name, options, plain, less, rewritten, remarks, stored.why, stored.drops_barriers, result, read, cache
    )


def _result_of(within: BudgetedCompile) -> str:
    """`19.5 MiB -> 4.1 MiB of temporaries, within the budget 0.5`."""
    needs = within.compiled.memory_analysis()
    after = within.plain if needs is None else int(needs.temp_size_in_bytes)
    before = format_bytes(within.plain)
    if within.rewritten is None:
        return f"{before} of temporaries, within the budget {within.budget} as it is"
    kept = "as little as was found" if within.temporaries is None else f"within the budget {within.budget}"
    return f"{before} -> {format_bytes(after)} of temporaries, {kept}"


def _searching_options(options: Options, plain: jax.stages.Lowered) -> RecomputeOptions:
    """The options of the rewrite; with `search`, candidates are measured by the compiler."""
    if not options.search:
        return options.rewrite
    compiler_options = _keeping_options(plain, options, None)

    def temporaries(module: ModuleOp) -> int:
        analysis = _compile(crossing.with_module(plain, module), compiler_options).memory_analysis()
        return 0 if analysis is None else int(analysis.temp_size_in_bytes)

    return replace(options.rewrite, attempts=options.search, measure=temporaries, workers=os.cpu_count() or 1)


@dataclass(frozen=True)
class _PlainStep:
    """A step that cannot be rewritten and stays as it is."""

    name: str
    options: Options
    plain: jax.stages.Lowered
    drops_barriers: bool
    module: ModuleOp | None
    cache: StepCache

    def because(self, error: Refusal | NotProved | ParseError) -> Lowered:
        """The plain step with the error as its reason. Raises the error if the options demand a rewrite."""
        if self.options.demands(error):
            raise error
        why = warning.refused(self.name, error)
        remark = Remark(error.operation, error.reason) if isinstance(error, Refusal) else str(error)
        plain, drops, module = self.plain, self.drops_barriers, self.module
        return Lowered(
            self.name, self.options, plain, plain, None, (remark,), why, drops, read=lambda: module, cache=self.cache
        )
