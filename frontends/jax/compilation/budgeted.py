"""Compile a JAX step within a budget: the search in `search/budget/compiled_search.py`, with JAX as its backend.

A step may have several variants: the plain step, a rewrite in which the copies of the step's own `jax.checkpoint` are
merged into their originals, and a rewrite that keeps these copies. The plain step runs if it is within the budget.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import jax
from xdsl.dialects.builtin import ModuleOp

from ....dialects.cloning import clone_of
from ....driver.api import rewrite
from ....driver.rewrites.rewritten import Rewritten
from ....driver.verification.verified import NotProved
from ....options.recompute_options import RecomputeOptions
from ....planning.solvers.result import Stop
from ....search.budget.compiled_candidate import CompiledCandidate
from ....search.budget.compiled_refusal import BudgetNotReached
from ....search.budget.compiled_search import PREPARATION_SHARE, CompiledSearch
from ....search.budget.compiler_backend import SearchRequest
from ....search.candidate_plans.pool import ModuleCandidate, Pool
from ....search.candidate_plans.pool_cache import pool_of
from ....search.local_choices.limit_segments import selection_without_budgets
from ....support.diagnostics import Refusal
from ....support.interrupts import stop_predicate
from ....support.progress import ProgressLine
from ....transforms.merge_remat import merge_remat
from ....transforms.take_marks import take_marks
from ..keywords.jit_options import JitOptions
from .allocation import reported_bytes, temporary_bytes
from .budgeted_result import BudgetedCompile
from .compiler_options import MEASURING
from .compilers import Compilers
from .device_limits import limit_of_step

OWN_CHECKPOINT = "the plain step with its own jax.checkpoint"
MAX_COMPILED = 4
"""The maximum number of candidates to compile before a search ends, not counting the plain step
(`CompiledSearch.tries`)."""
_LOG = logging.getLogger("recompute.jax")


def compile_within(
    name: str,
    module: ModuleOp,
    alternatives: Sequence[RecomputeOptions],
    options: JitOptions,
    compilers: Compilers,
    line: ProgressLine,
) -> BudgetedCompile:
    """Compile the step within a budget. A time limit or Ctrl-C ends the search with the best candidate so far.

    The time limit starts when the compilation of the plain step starts. The plain step and one candidate are always
    compiled. For `min`, the search compares the candidates of all alternatives with the plain step, compiled with and
    without its own barriers. Therefore, no variant that is chosen without a budget needs less memory than the result
    for `min`.

    Args:
        name: The name of the step.
        module: The plain step, with its marks.
        alternatives: One or more sets of rewrite options, without the budget. Later sets are tried only for `min`, or
            if no candidate of an earlier set meets the budget. For a step with its own `jax.checkpoint`, the first set
            merges its copies, and the second keeps them.
        options: The options of the step, with a budget, and possibly a time limit for the search.
        compilers: The functions that compile the step.
        line: The line on which progress is shown.

    Raises:
        Refusal: If no compiled candidate is within the budget, or if the compiler or the device reports no sizes.
    """
    first, budget = alternatives[0], options.budget
    assert budget is not None, "the caller checks for a budget"
    # The time to compile the plain step is included, because the user also waits for it.
    with stop_predicate(options.rewrite.time_limit) as stop:
        line.begin("compiling the plain step", 0.0, PREPARATION_SHARE)
        plain = compilers.compile_plain()
        unchanged = _plain_result(module, budget, plain)
        is_within = unchanged.limit_bytes is not None and unchanged.plain_bytes <= unchanged.limit_bytes
        if is_within and not first.selection.segment_budgets:
            return unchanged
        searches = [
            _CompilerSearch(
                _Request(
                    name=name,
                    module=module,
                    options=alternative,
                    budget=budget,
                    plain_bytes=unchanged.plain_bytes,
                    limit_bytes=unchanged.limit_bytes,
                    compilers=compilers,
                    line=line,
                    stop=stop,
                    time_limit=options.rewrite.time_limit,
                )
            )
            for alternative in alternatives
        ]
        return _best_result(unchanged, searches)


def _rewritten(module: ModuleOp, options: RecomputeOptions) -> Rewritten | None:
    """Rewrite the step. Return None if the options do not apply, or if nothing is recomputed."""
    try:
        rewritten = rewrite(module, options)
    except (Refusal, NotProved):
        return None
    return rewritten if rewritten.copies else None


def _plain_result(module: ModuleOp, budget: str, plain: jax.stages.Compiled) -> BudgetedCompile:
    """Return the compiled plain step as a result, with the limit that the budget sets. Raises the errors of
    `compile_within`."""
    return BudgetedCompile(
        budget=budget,
        limit_bytes=limit_of_step(module, budget, plain),
        plain_bytes=reported_bytes(module, plain, "a budget"),
        rounds=(),
        rewritten=None,
        compiled=plain,
        plain_step=plain,
    )


def _best_result(unchanged: BudgetedCompile, searches: Sequence[_CompilerSearch]) -> BudgetedCompile:
    """Run the searches. Return the smallest result, with the candidates of all searches.

    With a limit, the searches end once one of them has met the limit. For `min`, all searches run, unless the time
    limit ends them.

    Args:
        unchanged: The compiled plain step.
        searches: A search for each alternative of the options, at least one.

    Raises:
        Refusal: If no result is within the budget. The raised refusal reports the smallest candidate.
    """
    is_minimum = unchanged.limit_bytes is None
    results, refusals, is_cut = list[BudgetedCompile](), list[Refusal](), False
    for search in searches:
        is_cut = bool(results) and is_minimum and search.request.stop()
        if is_cut or (results and not is_minimum):
            break
        try:
            results.append(replace(search.best(), plain_step=unchanged.plain_step))
        except Refusal as error:
            refusals.append(error)
    module, compilers = searches[0].request.module, searches[0].request.compilers
    results += _results_without_rewrite(unchanged, compilers, bool(results))
    if not results:
        raise min(refusals, key=_least_bytes)
    # If sizes are equal, the plain step is preferred, since it needs no proof and the least work.
    best = min(reversed(results), key=lambda result: reported_bytes(module, result.compiled, "a budget"))
    rounds = tuple([compiled for result in results for compiled in result.rounds])
    return replace(best, rounds=rounds, is_complete=not is_cut and all(result.is_complete for result in results))


def _least_bytes(error: Refusal) -> float:
    """Return the size of the smallest candidate that a refusal reports, in bytes; infinity if it reports none."""
    least_bytes = error.least_bytes if isinstance(error, BudgetNotReached) else None
    return inf if least_bytes is None else least_bytes


def _results_without_rewrite(
    unchanged: BudgetedCompile, compilers: Compilers, has_rewritten: bool
) -> Iterator[BudgetedCompile]:
    """Yield the results that need no rewrite.

    The plain step is yielded only for the budget `min`, and only if there are rewritten steps to compare it with. The
    plain step with its own barriers is yielded for `min`, and for a limit that no rewritten step meets.

    Args:
        unchanged: The plain step.
        compilers: The functions that compile the step.
        has_rewritten: Whether a rewritten step is within the limit.
    """
    is_minimum = unchanged.limit_bytes is None
    if is_minimum and has_rewritten:
        yield unchanged
    if compilers.compile_keeping is not None and (is_minimum or not has_rewritten):
        keeping = _with_own_barriers(unchanged, compilers.compile_keeping())
        if keeping is not None:
            yield keeping


def _with_own_barriers(unchanged: BudgetedCompile, keeping: jax.stages.Compiled) -> BudgetedCompile | None:
    """Return the plain step, compiled so that the user's barriers are kept; None if this program exceeds the limit or
    its memory is unknown.

    Args:
        unchanged: The plain step.
        keeping: The compiled step that keeps the user's barriers.
    """
    kept_bytes, limit_bytes = temporary_bytes(keeping), unchanged.limit_bytes
    if kept_bytes is None or (limit_bytes is not None and kept_bytes > limit_bytes):
        return None
    candidate = CompiledCandidate(OWN_CHECKPOINT, None, kept_bytes, 0, None if limit_bytes is None else True)
    return replace(unchanged, rounds=(candidate,), compiled=keeping, is_keeping=True)


@dataclass(frozen=True, kw_only=True)
class _Request(SearchRequest):
    """The inputs of the search for one step with one set of rewrite options.

    `compilers`: the functions that compile the step.
    """

    compilers: Compilers
    log: logging.Logger = _LOG


@dataclass(frozen=True)
class _JaxBackend:
    """The search backend. It rewrites modules and compiles them with JAX. See `CompilerBackend`."""

    request: _Request

    @property
    def key(self) -> str:
        return self.request.compilers.key

    def pool(self, stop: Stop) -> Pool:
        """Read the marks of the step, merge the copies of its own `jax.checkpoint` if the options request it, and
        return the candidates.
        """
        marked = clone_of(self.request.module)
        take_marks(marked)
        if self.request.options.merge_remat:
            merge_remat(marked)
        return pool_of(marked, self.request.options, stop)

    def rewrite(self, candidate: ModuleCandidate | None) -> Rewritten | None:
        options = self.request.options
        if candidate is not None:
            selection = selection_without_budgets(options.selection)
            options = replace(options, selection=selection, plan=candidate.plans, loops=candidate.loops)
        return _rewritten(self.request.module, options)

    def compile(self, rewritten: Rewritten, is_final: bool) -> jax.stages.Compiled:
        return self.request.compilers.compile_rewritten(rewritten.module, {} if is_final else MEASURING)

    def measured_bytes(self, compiled: jax.stages.Compiled) -> int:
        return reported_bytes(self.request.module, compiled, "a budget")


@dataclass
class _CompilerSearch:
    """The search that answers one request. `request`: the inputs of the search."""

    request: _Request
    _search: CompiledSearch[Rewritten, jax.stages.Compiled] = field(init=False)

    def __post_init__(self) -> None:
        self._search = CompiledSearch(self.request, _JaxBackend(self.request), MAX_COMPILED)

    def best(self) -> BudgetedCompile:
        """Compile candidates and return the best one. Raises `Refusal` if none is within the budget."""
        best = self._search.best()
        return BudgetedCompile(
            budget=self.request.budget,
            limit_bytes=self.request.limit_bytes,
            plain_bytes=self.request.plain_bytes,
            rounds=tuple(self._search.rounds),
            rewritten=best.rewritten,
            compiled=best.compiled,
            is_complete=self._search.is_complete,
        )
