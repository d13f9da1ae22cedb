"""A step as JAX lowers it, and the same rewritten.

`jax.stages.Lowered` -> StableHLO with locations -> `recompute.rewrite` -> `jax.stages.Lowered` of the new module

Pytrees, donation, shardings and constants stay with JAX's own object: only the module inside of it is another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
from jax.extend import source_info_util
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from ...dialects.marks import is_named_as_mark
from ...dialects.stablehlo.control import OptimizationBarrierOp
from ...driver.api import Rewritten, rewrite
from ...driver.verified import NotProved
from ...options.recompute_options import RecomputeOptions
from ...options.selection import BadSelection
from ...support.diagnostics import Refusal, Remark
from ...support.walk import every_operation
from . import crossing, private, warning
from .barriers import keeping_barriers
from .budget import Within, within
from .host import honoured
from .marks import WRITTEN_AS_CALLS
from .merged import merged
from .options import Options
from .progress import told

if TYPE_CHECKING:
    from .choice import Choice

# What JAX adds when it lowers stands at the line of the user that led here.
for _file in (__file__, private.__file__):
    source_info_util.register_exclusion(_file)


@dataclass(frozen=True)
class Lowered:
    """What `recompute.jax.jit(…).lower(…)` gives.

    plain: JAX's own `Lowered`. less: the one that is compiled; `plain` itself where nothing is recomputed. rewritten:
    what was done to the module, None where nothing could be. why: in one sentence, why nothing is recomputed; None
    where something is. remarks: of the rewrite, or the reason why there is none. drops_barriers: the
    plain step has barriers of its own, as those of `jax.checkpoint`, and `jax.jit` drops them here. module: the plain
    step as we read it. within: how a budget was kept, None where there is none.
    """

    name: str
    options: Options
    plain: jax.stages.Lowered
    less: jax.stages.Lowered
    rewritten: Rewritten | None
    remarks: tuple[Remark | str, ...]
    why: str | None
    drops_barriers: bool = False
    module: ModuleOp | None = None
    within: Within | None = None

    @cached_property
    def choice(self) -> Choice:
        """What a call runs, compiled once. Raises `Refusal` with `strict` where the plain step needs less."""
        from .choice import chosen  # It chooses between the ways of this class.

        return chosen(self)

    @cached_property
    def plain_compiled(self) -> jax.stages.Compiled:
        """The plain step as `jax.jit` compiles it, compiled once."""
        return self.compile_plain()

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """The rewritten step; the plain one where nothing is recomputed, just as `jax.jit` compiles it."""
        if self.within is not None and compiler_options is None:
            return self.within.compiled
        if self.why is not None:
            return self.compile_plain(compiler_options)
        return _compiled(self.less, _keeping(self.plain, self.options, compiler_options))

    def compile_plain(
        self, compiler_options: Mapping[str, Any] | None = None, *, keeping: bool = False
    ) -> jax.stages.Compiled:
        """The plain step as `jax.jit` compiles it. `keeping`: with the options of the rewritten one, which keep
        barriers."""
        options = _keeping(self.plain, self.options, compiler_options) if keeping else compiler_options
        return _compiled(self.plain, None if options is None else dict(options))

    @cached_property
    def merged(self) -> Rewritten | None:
        """The step with its own `jax.checkpoint` merged back, and rewritten; None where there is no such step."""
        return merged(self.module, _searching(self.options, self.plain)) if self.drops_barriers else None

    def compile_merged(self) -> jax.stages.Compiled:
        """The merged step, which there is."""
        assert self.merged is not None, "there is a merged step"
        less = crossing.with_module(self.plain, self.merged.module)
        return _compiled(less, _keeping(self.plain, self.options, None))

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module that is compiled, as `jax.stages.Lowered.as_text` prints it."""
        return self.less.as_text(dialect, debug_info=debug_info)


def _keeping(plain: jax.stages.Lowered, options: Options, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Compiler options that keep barriers."""
    return keeping_barriers(private.platforms(plain), options.jit.get("compiler_options"), given)


def _compiled(lowered: Any, compiler_options: dict[str, Any] | None) -> jax.stages.Compiled:
    return lowered.compile(compiler_options)


def lowered_for_us(traced: jax.stages.Traced) -> jax.stages.Lowered:
    """As JAX lowers it, and marks are calls in it."""
    return private.lower(traced, WRITTEN_AS_CALLS)


def rewritten(name: str, traced: jax.stages.Traced, options: Options) -> Lowered:
    """The step, recomputed as the options say, or as it is with the reason.

    Raises `ValueError` for a selection that does not fit the step; with `strict`, or with a plan or a planner, what
    `recompute.rewrite` raises; `UnsupportedJax`.
    """
    marked = lowered_for_us(traced)
    private.check(marked)
    try:
        module = crossing.module_of(marked, name)
    except ParseError as error:
        return _Left(name, options, traced.lower(), False, None).because(error)
    plain = traced.lower() if any(map(is_named_as_mark, every_operation(module))) else marked
    has_barriers = any(isinstance(op, OptimizationBarrierOp) for op in every_operation(module))
    drops_barriers = has_barriers and "cpu" in private.platforms(plain)
    options, said = honoured(options, private.platforms(plain))
    try:
        with told(f"recompute.jax: rewriting {name}"):
            if options.budget is not None:
                found = _within(name, options, options.budget, plain, module)
                return replace(found, remarks=(*found.remarks, *said))
            done = rewrite(module, _searching(options, plain))
    except (Refusal, NotProved) as error:
        if isinstance(error.__cause__, BadSelection):
            raise BadSelection(f"{name}: {error.__cause__}") from error
        return _Left(name, options, plain, drops_barriers, module).because(error)
    if not done.copies:
        why = warning.nothing_recomputed(name, warning.why_nothing(done.remarks))
        return Lowered(name, options, plain, plain, done, (*done.remarks, *said), why, drops_barriers, module)
    less = crossing.with_module(plain, done.module)
    return Lowered(name, options, plain, less, done, (*done.remarks, *said), None, drops_barriers, module)


def _within(name: str, options: Options, budget: str, plain: jax.stages.Lowered, module: ModuleOp) -> Lowered:
    """Raises `Refusal`."""
    found = within(
        name,
        module,
        options.rewrite,
        budget,
        lambda: _compiled(plain, None),
        lambda one: _compiled(crossing.with_module(plain, one), _keeping(plain, options, None)),
    )
    if (done := found.done) is None:
        why = warning.nothing_recomputed(name, found.nothing_to_do)
        return Lowered(name, options, plain, plain, None, (found.nothing_to_do,), why, module=module, within=found)
    less = crossing.with_module(plain, done.module)
    return Lowered(name, options, plain, less, done, done.remarks, None, module=module, within=found)


def _searching(options: Options, plain: jax.stages.Lowered) -> RecomputeOptions:
    """The options, with the compiler for a judge where several attempts are to be compiled."""
    if not options.search:
        return options.rewrite
    keeping = _keeping(plain, options, None)

    def temporaries(module: ModuleOp) -> int:
        analysis = _compiled(crossing.with_module(plain, module), keeping).memory_analysis()
        return 0 if analysis is None else int(analysis.temp_size_in_bytes)

    return replace(options.rewrite, attempts=options.search, measure=temporaries, workers=os.cpu_count() or 1)


@dataclass(frozen=True)
class _Left:
    """A step that cannot be rewritten."""

    name: str
    options: Options
    plain: jax.stages.Lowered
    drops_barriers: bool
    module: ModuleOp | None

    def because(self, error: Refusal | NotProved | ParseError) -> Lowered:
        """Raises the error where it is the user's to see."""
        if self.options.demands(error):
            raise error
        why = warning.refused(self.name, error)
        remark = Remark(error.operation, error.reason) if isinstance(error, Refusal) else str(error)
        plain, drops = self.plain, self.drops_barriers
        return Lowered(self.name, self.options, plain, plain, None, (remark,), why, drops, self.module)
