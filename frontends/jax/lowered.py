"""A step as JAX lowers it, and the same rewritten.

`jax.stages.Lowered` -> StableHLO with locations -> `recompute.rewrite` -> `jax.stages.Lowered` of the new module

Pytrees, donation, shardings and constants stay with JAX's own object: only the module inside of it is another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
from xdsl.utils.exceptions import ParseError

from ...analysis.request.selection import BadSelection
from ...dialects.diagnostics import Refusal, Remark
from ...driver.api import Rewritten, rewrite
from ...driver.road import NotProved
from ...transforms.phase import NoGradient
from . import crossing, private, warning
from .barriers import keeping_barriers
from .options import Options


@dataclass(frozen=True)
class Lowered:
    """What `recompute.jax.jit(…).lower(…)` gives.

    plain: JAX's own `Lowered`. less: the one that is compiled; `plain` itself where nothing is recomputed. rewritten:
    what was done to the module, None where nothing could be. why: in one sentence, why nothing is recomputed; None
    where something is. remarks: of the rewrite, or the reason why there is none.
    """

    name: str
    options: Options
    plain: jax.stages.Lowered
    less: jax.stages.Lowered
    rewritten: Rewritten | None
    remarks: tuple[Remark | str, ...]
    why: str | None

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """The rewritten step; the plain one where nothing is recomputed, just as `jax.jit` compiles it."""
        if self.why is not None:
            return _compiled(self.plain, None if compiler_options is None else dict(compiler_options))
        return _compiled(self.less, self._keeping(compiler_options))

    def compile_plain(self, compiler_options: Mapping[str, Any] | None = None) -> jax.stages.Compiled:
        """The plain step with the options of the rewritten one, to compare them."""
        return _compiled(self.plain, self._keeping(compiler_options))

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module that is compiled, as `jax.stages.Lowered.as_text` prints it."""
        return self.less.as_text(dialect, debug_info=debug_info)

    def _keeping(self, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return keeping_barriers(private.platforms(self.plain), self.options.jit.get("compiler_options"), given)


def _compiled(lowered: Any, compiler_options: dict[str, Any] | None) -> jax.stages.Compiled:
    return lowered.compile(compiler_options)


def rewritten(name: str, plain: jax.stages.Lowered, options: Options) -> Lowered:
    """The step, recomputed as the options say, or as it is with the reason.

    Raises `ValueError` for a selection that does not fit the step; with `strict`, or with a plan or a planner, what
    `recompute.rewrite` raises; `UnsupportedJax`.
    """
    private.check(plain)
    try:
        done = rewrite(crossing.module_of(plain, name), options.request)
    except NoGradient as error:
        return _left(name, options, plain, error, warning.no_gradient(name))
    except (Refusal, NotProved, ParseError) as error:
        if isinstance(error.__cause__, BadSelection):
            raise BadSelection(f"{name}: {error.__cause__}") from error
        if options.is_planned:
            raise
        return _left(name, options, plain, error, warning.nothing_recomputed(name, _reason(error)))
    if not done.copies:
        why = warning.nothing_recomputed(name, warning.last_reason(done.remarks))
        return Lowered(name, options, plain, plain, done, done.remarks, why)
    return Lowered(name, options, plain, crossing.with_module(plain, done.module), done, done.remarks, None)


def _left(name: str, options: Options, plain: jax.stages.Lowered, error: Exception, why: str) -> Lowered:
    """Raises the error with `strict`."""
    if options.request.strict:
        raise error
    remark = Remark(error.operation, error.reason) if isinstance(error, Refusal) else str(error)
    return Lowered(name, options, plain, plain, None, (remark,), why)


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, Refusal) else str(error)
