"""Search for a plan within a budget by compiling candidates: plan, compile, correct the model, repeat.

The model of XLA:CPU predicts the temporaries of every candidate. The candidate with the least extra work that is
predicted to fit is compiled. Its measured size corrects the predictions for the other candidates (`CalibratedSearch`).
This repeats until no cheaper candidate is predicted to fit, or until `MOST_COMPILED` candidates have been compiled. If
none of them fits, up to `MAX_EXTRA_CANDIDATES` candidates of other kinds follow (`search/budget/rounds.py`), and
finally the choice without a budget.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ....dialects.cloning import clone_of
from ....driver.api import rewrite
from ....driver.rewritten import Rewritten
from ....driver.verified import NotProved
from ....options.recompute_options import RecomputeOptions
from ....planning.solvers.effort import NO_NUMBA_MESSAGE, SECONDS_AS_PYTHON, is_compiled, time_limit
from ....planning.solvers.result import Stop
from ....search.budget.compiled_candidate import WITHOUT_BUDGET, CompiledCandidate
from ....search.budget.compiled_refusal import BudgetNotReached, FailedSearch, least_bytes_of
from ....search.budget.rounds import Rounds
from ....search.pool import ModuleCandidate, Pool
from ....search.pool_cache import pool_of
from ....support.diagnostics import Refusal
from ....support.interrupts import Interrupt, stop_predicate
from ....support.progress import ProgressLine
from ....transforms.merge_remat import merge_remat
from ....transforms.plans.limit_segments import selection_without_budgets
from ....transforms.take_marks import take_marks
from .allocation import reported_bytes, temporary_bytes
from .budgeted_result import BudgetedCompile
from .compiler_options import MEASURING
from .device_limits import limit_of_step

OWN_CHECKPOINT = "the plain step with its own jax.checkpoint"
MOST_COMPILED = 4
"""The maximum number of candidates to compile before a search ends.

The plain step is not counted, nor are the candidates that precede a refusal: up to `MAX_EXTRA_CANDIDATES` candidates of
other kinds, and the choice without a budget, which is also compiled for `min`.
"""
BEFORE_PLANS = 0.4
"""The approximate share of the time that passes before the first candidate is compiled."""
CompileModule = Callable[[ModuleOp, Mapping[str, Any]], jax.stages.Compiled]
_LOG = logging.getLogger("recompute.jax")


@dataclass(frozen=True)
class Compilers:
    """Functions that compile a step.

    Attributes:
        compile_plain: Compiles the plain step.
        compile_rewritten: Compiles a rewritten module of the step, with compiler options in addition to its own.
        key: A string that is equal for compilers that measure the same sizes.
        compile_keeping: Compiles the plain step with its own barriers (`jax.checkpoint`); None if it has none, or if
            `compile_plain` keeps them.
    """

    compile_plain: Callable[[], jax.stages.Compiled]
    compile_rewritten: CompileModule
    key: str
    compile_keeping: Callable[[], jax.stages.Compiled] | None = None


def compile_within(
    name: str,
    module: ModuleOp,
    alternatives: Sequence[RecomputeOptions],
    budget: str,
    time_limit: float | None,
    compilers: Compilers,
    line: ProgressLine,
) -> BudgetedCompile:
    """Compile the step within a budget. A time limit or Ctrl-C ends the search with the best candidate so far.

    The limit counts from the compilation of the plain step on. The plain step and one candidate are always compiled.
    For `min`, the candidates are those of all alternatives, the plain step, and the plain step with its own
    `jax.checkpoint`, so that no choice without a budget needs less memory.

    Args:
        name: The name of the step.
        module: The plain step, with its marks.
        alternatives: Sets of options of the rewrite, at least one. Later sets are tried only for `min`, or if no
            earlier one reaches the budget. For a step with its own `jax.checkpoint`, the first set merges its copies,
            and the second keeps them.
        budget: The budget, as `checked_budget` returns it.
        time_limit: The seconds after which the search ends; None for no limit.
        compilers: The functions that compile the step.
        line: The line on which progress is shown.

    Raises:
        Refusal: If no compiled candidate is within the budget, or if the compiler or the device reports no sizes.
    """
    first = alternatives[0]
    # The time that the plain step takes to compile counts: the user waits for the whole.
    with stop_predicate(time_limit) as stop:
        line.begin("compiling the plain step", 0.0, BEFORE_PLANS)
        unchanged = _plain_result(module, budget, compilers.compile_plain())
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
                    time_limit=time_limit,
                )
            )
            for alternative in alternatives
        ]
        return _best_result(unchanged, searches)


def _plain_result(module: ModuleOp, budget: str, plain: jax.stages.Compiled) -> BudgetedCompile:
    """Return the compiled plain step as a result, with the limit that the budget sets. Raises as `compile_within`
    does."""
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
    """Run the searches, and return the smallest result, with the candidates of all of them.

    With a limit, no search follows one that has met it. For `min`, all searches are run until the time is over.

    Args:
        unchanged: The compiled plain step.
        searches: A search for each alternative of the options, at least one.

    Raises:
        Refusal: If no result is within the budget: the refusal that states the smallest candidate.
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
        raise min(refusals, key=least_bytes_of)
    # If sizes are equal, the plain step is preferred, which needs no proof and the least work.
    best = min(reversed(results), key=lambda result: reported_bytes(module, result.compiled, "a budget"))
    rounds = tuple([compiled for result in results for compiled in result.rounds])
    return replace(best, rounds=rounds, is_complete=not is_cut and all(result.is_complete for result in results))


def _results_without_rewrite(
    unchanged: BudgetedCompile, compilers: Compilers, has_rewritten: bool
) -> Iterator[BudgetedCompile]:
    """Yield the results that need no rewrite.

    For the budget `min`, the plain step is yielded beside rewritten steps. The plain step with its own barriers is
    yielded for `min`, and if no rewritten step is within the limit.

    Args:
        unchanged: The plain step.
        time_limit: The seconds after which the search ends; None for no limit.
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
    """Return the result of the plain step with its own barriers kept; None if it exceeds the limit or its size is
    unknown.

    Args:
        unchanged: The plain step.
        keeping: The plain step with its own barriers, compiled.
    """
    kept_bytes, limit_bytes = temporary_bytes(keeping), unchanged.limit_bytes
    if kept_bytes is None or (limit_bytes is not None and kept_bytes > limit_bytes):
        return None
    candidate = CompiledCandidate(OWN_CHECKPOINT, None, kept_bytes, 0, None if limit_bytes is None else True)
    return replace(unchanged, rounds=(candidate,), compiled=keeping, is_keeping=True)


def _work(rewritten: Rewritten) -> tuple[object, ...]:
    """Return a key for the work of a rewrite, which is equal for equal plans.

    It consists of the number of copies, their FLOPs, and the groups of copies in the plans. The first two include
    copies in loops, which are not part of a plan.
    """
    return rewritten.copies, rewritten.extra_flops, *(step.plan.groups for step in rewritten.plans)


@dataclass(frozen=True)
class _Candidate:
    """A compiled rewritten step.

    `is_final`: whether it was compiled with the compiler options with which the step will run.
    """

    rewritten: Rewritten
    compiled: jax.stages.Compiled
    is_final: bool


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The inputs of the search for one step with one alternative of its options.

    Attributes:
        name, module, budget, compilers, line, time_limit: As in `compile_within`.
        options: The options of the rewrite.
        plain_bytes: The temporaries of the plain step in bytes.
        limit_bytes: The bytes that the budget leaves for temporaries; None for the budget `min`.
        stop: A predicate that ends the search with the best candidate so far.
    """

    name: str
    module: ModuleOp
    options: RecomputeOptions
    budget: str
    plain_bytes: int
    limit_bytes: int | None
    compilers: Compilers
    line: ProgressLine
    stop: Stop
    time_limit: float | None = None


@dataclass
class _CandidateCompiler:
    """A compiler of the candidates of one search, which rewrites, compiles and records them.

    Attributes:
        request: The inputs of the search.
        rounds: The candidates that have been compiled so far.
        most_compiled: The maximum number of rewritten steps that the search compiles.
    """

    request: _Request
    rounds: list[CompiledCandidate] = field(default_factory=list[CompiledCandidate])
    most_compiled: int = MOST_COMPILED

    def measure(self, candidate: ModuleCandidate, predicted: float) -> tuple[float, _Candidate] | None:
        """Rewrite the step according to a candidate, and compile the result.

        Args:
            candidate: The candidate.
            predicted: Its predicted temporaries in bytes.

        Returns:
            The measured temporaries in bytes, and the compiled candidate; None if its plans do not apply.
        """
        compiles, most = len(self.rounds), self.most_compiled
        first, end = (BEFORE_PLANS + (1 - BEFORE_PLANS) * count / most for count in (compiles, compiles + 1))
        self.request.line.begin(f"plan {compiles + 1} of at most {most}", first, end)
        try:
            rewritten = self._rewrite(candidate)
        except (Refusal, NotProved):
            self.rounds.append(CompiledCandidate(candidate.words, int(predicted), None, 0, None))
            return None
        compiled = self.compile(rewritten, candidate.words, int(predicted))
        return float(reported_bytes(self.request.module, compiled.compiled, "a budget")), compiled

    def compile(self, rewritten: Rewritten, words: str, predicted_bytes: int | None) -> _Candidate:
        """Compile a rewritten step, and record it under a description and its predicted temporaries."""
        # With a limit, any candidate may be the one that runs. With "min", the first one, which is predicted to be the
        # smallest, is likely to run.
        is_final = self.request.limit_bytes is not None or not self.rounds
        compiled = self.request.compilers.compile_rewritten(rewritten.module, {} if is_final else MEASURING)
        measured_bytes = reported_bytes(self.request.module, compiled, "a budget")
        fits = None if self.request.limit_bytes is None else measured_bytes <= self.request.limit_bytes
        self.rounds.append(CompiledCandidate(words, predicted_bytes, measured_bytes, rewritten.extra_flops, fits))
        _LOG.info("%s: %d of %d: %s", self.request.name, len(self.rounds), self.most_compiled, self.rounds[-1])
        return _Candidate(rewritten, compiled, is_final)

    def compiled_to_run(self, candidate: _Candidate) -> jax.stages.Compiled:
        """Return the candidate, compiled with the compiler options with which the step runs."""
        return (
            candidate.compiled
            if candidate.is_final
            else self.request.compilers.compile_rewritten(candidate.rewritten.module, {})
        )

    def _rewrite(self, candidate: ModuleCandidate) -> Rewritten:
        selection = selection_without_budgets(self.request.options.selection)
        options = replace(self.request.options, selection=selection, plan=candidate.plans, loops=candidate.loops)
        rewritten = rewrite(self.request.module, options)
        if not rewritten.copies:
            raise Refusal(self.request.module, "nothing is recomputed")
        return rewritten


@dataclass
class _StopRecord:
    """A stop predicate, with a record of whether it has ended a part of a search.

    Attributes:
        stop: The predicate.
        has_stopped: Whether a check has found that the search must end. If not, more time would not change the result.
    """

    stop: Stop
    has_stopped: bool = False

    def check(self) -> bool:
        """Return whether the search must end, and record it. Callers check only while work is left."""
        self.has_stopped = self.has_stopped or self.stop()
        return self.has_stopped


@dataclass
class _CompilerSearch:
    """The search that answers one request. The compiler measures the candidates of `Rounds`.

    Attributes:
        request: The inputs of the search.
        interrupts: The number of interrupts before the search.
    """

    request: _Request
    interrupts: int = field(default_factory=lambda: Interrupt.count)

    @cached_property
    def _compiler(self) -> _CandidateCompiler:
        return _CandidateCompiler(self.request)

    @cached_property
    def _stop(self) -> _StopRecord:
        return _StopRecord(self.request.stop)

    def best(self) -> BudgetedCompile:
        """Compile candidates and return the best one. Raises `Refusal` if none is within the budget."""
        is_over = self._stop_of_planning()
        pool = self._pool(is_over)
        search = self._rounds(pool, is_over)
        # For `min` and before a refusal, the choice without a budget is also compiled.
        self._compiler.most_compiled = search.most_measured(MOST_COMPILED) + 1
        best = search.best(MOST_COMPILED)
        if not search.results:
            # Planning found no candidate. If the search must end now, planning was cut short.
            self._stop.check()
        if self.request.limit_bytes is None or best is None:
            best = self._try_no_budget(pool, list(search.results.values()), best) or best
        if best is None:
            raise self._refusal(pool)
        compiled = self._compiler.compiled_to_run(best)
        return BudgetedCompile(
            budget=self.request.budget,
            limit_bytes=self.request.limit_bytes,
            plain_bytes=self.request.plain_bytes,
            rounds=tuple(self._compiler.rounds),
            rewritten=best.rewritten,
            compiled=compiled,
            is_complete=is_compiled() and not self._stop.has_stopped,
        )

    def _rounds(self, pool: Pool, is_over: Stop) -> Rounds[ModuleCandidate, _Candidate]:
        return Rounds(
            pool=pool,
            limit=self.request.limit_bytes,
            plain_needs=(1.0, float(self.request.plain_bytes)),
            measure=self._compiler.measure,
            stop=self._stop.check,
            is_over=is_over,
            measured_needs=pool.measured.setdefault(self.request.compilers.key, {}),
        )

    def _try_no_budget(self, pool: Pool, tried: Sequence[_Candidate], best: _Candidate | None) -> _Candidate | None:
        """Return the choice without a budget if it is better than the candidates so far; otherwise None.

        It is better if it is within the limit, or for `min`, if it needs less memory than the best candidate. So `min`
        never needs more memory than no budget, and a budget that this choice meets is never refused, even after a time
        limit. The pool stores the measured size for later searches.
        """
        if best is not None and self._stop.check():
            return None
        most_bytes = inf if self.request.limit_bytes is None else self.request.limit_bytes
        if best is not None:
            most_bytes = reported_bytes(self.request.module, best.compiled, "a budget") - 1
        if pool.unbudgeted.get(self.request.compilers.key, 0.0) > most_bytes:
            return None
        try:
            rewritten = rewrite(self.request.module, self.request.options)
        except (Refusal, NotProved):
            return None
        if not rewritten.copies:
            return None
        alike = next((candidate for candidate in tried if _work(rewritten) == _work(candidate.rewritten)), None)
        ordinary = alike or self._compiler.compile(rewritten, WITHOUT_BUDGET, None)
        ordinary_bytes = reported_bytes(self.request.module, ordinary.compiled, "a budget")
        pool.unbudgeted[self.request.compilers.key] = float(ordinary_bytes)
        return ordinary if alike is None and ordinary_bytes <= most_bytes else None

    def _pool(self, is_over: Stop) -> Pool:
        marked = clone_of(self.request.module)
        take_marks(marked)
        if self.request.options.merge_remat:
            merge_remat(marked)
        if not is_compiled():
            _LOG.warning("%s", NO_NUMBA_MESSAGE.format(seconds=SECONDS_AS_PYTHON))
        return pool_of(marked, self.request.options, is_over)

    def _stop_of_planning(self) -> Stop:
        """Return a predicate that ends the planning, at the work limit of the solvers or when the search ends."""
        is_over = time_limit()
        return lambda: is_over() or self._stop.check()

    def _refusal(self, pool: Pool) -> BudgetNotReached:
        is_interrupted = self._stop.has_stopped and Interrupt.count > self.interrupts
        failed = FailedSearch(
            module=self.request.module,
            budget=self.request.budget,
            limit_bytes=self.request.limit_bytes or 0,
            plain_bytes=self.request.plain_bytes,
            rounds=self._compiler.rounds,
            is_interrupted=is_interrupted,
            seconds=self.request.time_limit if self._stop.has_stopped and not is_interrupted else None,
        )
        return failed.refusal(pool, self.request.compilers.key)
