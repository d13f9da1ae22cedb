"""Search for a plan within a budget by compiling candidates: plan, compile, correct the model, repeat.

The XLA:CPU model predicts the temporaries of every candidate. The candidate with the least extra work that is predicted
to fit is compiled. Its measured size corrects the predictions for all remaining candidates (`CalibratedSearch`). These
steps are repeated until no cheaper candidate is predicted to fit, or until `tries` candidates have been compiled. If
none of them fits, up to `MAX_EXTRA_CANDIDATES` candidates of other kinds follow (`rounds.py`), and finally the choice
without a budget.

A `CompilerBackend` rewrites and compiles the step; the search decides which candidates it compiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from time import monotonic
from typing import Generic

from ...planning.solvers.effort import default_seconds, is_compiled
from ...planning.solvers.result import Stop
from ...support.interrupts import Interrupt
from ..candidate_plans.pool import ModuleCandidate, Pool
from .compiled_candidate import WITHOUT_BUDGET, CompiledCandidate
from .compiled_refusal import BudgetNotReached, FailedSearch
from .compiler_backend import CandidateRewrite, CompilerBackend, R, SearchRequest, T
from .rounds import Rounds

PREPARATION_SHARE = 0.4
"""The share of the search that progress lines assume for the time before the first candidate is compiled. It only
affects the share that is shown."""


@dataclass(frozen=True)
class CompiledRewrite(Generic[R, T]):
    """A rewritten step that was compiled and measured.

    Attributes:
        rewritten: The rewritten step.
        compiled: The compiled step.
        measured_bytes: Its temporaries in bytes.
        is_final: Whether the compiled step is ready to run.
    """

    rewritten: R
    compiled: T
    measured_bytes: int
    is_final: bool

    @property
    def work(self) -> tuple[object, ...]:
        """A key for the work of the rewrite; see `work_key`."""
        return work_key(self.rewritten)


def work_key(rewritten: CandidateRewrite) -> tuple[object, ...]:
    """Return a key that is equal for rewrites with equal work. Equal plans have equal keys. The key consists of the
    number of copies, their FLOPs, and the copy groups of the plans. The number and the FLOPs include copies in loops,
    which are not part of a plan.
    """
    return rewritten.copies, rewritten.extra_flops, *(step.plan.groups for step in rewritten.plans)


@dataclass
class _StopRecord:
    """A stop predicate that records whether it has ended a part of a search.

    Attributes:
        stop: The predicate.
        has_stopped: Whether a check has found that the search must end. If this is false, more time would not change
            the result.
    """

    stop: Stop
    has_stopped: bool = False

    def check(self) -> bool:
        """Return whether the search must end, and record the answer. Callers call this method only while work is
        left."""
        self.has_stopped = self.has_stopped or self.stop()
        return self.has_stopped


@dataclass
class CompiledSearch(Generic[R, T]):
    """The search that answers one request. The backend compiles the candidates that `Rounds` selects.

    Attributes:
        request: The inputs of the search.
        backend: The backend that rewrites and compiles the step.
        tries: The maximum number of candidates to compile before the search ends. Two kinds of additional candidates
            are not counted: before a refusal, up to `MAX_EXTRA_CANDIDATES` candidates of kinds that were not compiled
            yet; and before a refusal or for `min`, the choice that is made without a budget.
        rounds: The candidates that have been compiled so far.
        interrupts: The number of interrupts before the search.
    """

    request: SearchRequest
    backend: CompilerBackend[R, T]
    tries: int
    rounds: list[CompiledCandidate] = field(default_factory=list[CompiledCandidate])
    interrupts: int = field(default_factory=lambda: Interrupt.count)

    def __post_init__(self) -> None:
        self._most_compiled = self.tries

    @cached_property
    def _stop(self) -> _StopRecord:
        return _StopRecord(self.request.stop)

    @property
    def is_complete(self) -> bool:
        """Whether the search was completed rather than stopped by a time limit or Ctrl-C."""
        return is_compiled() and not self._stop.has_stopped

    def best(self) -> CompiledRewrite[R, T]:
        """Compile candidates. Return the best one, ready to run. Raises `BudgetNotReached` if none is within the
        budget."""
        seconds = default_seconds(self.request.log)
        planning_end = inf if seconds is None else monotonic() + seconds

        def is_over() -> bool:
            return monotonic() > planning_end or self._stop.check()

        pool = self.backend.pool(is_over)
        search = self._rounds(pool, is_over)
        # For `min` and before a refusal, the choice without a budget is also compiled.
        self._most_compiled = search.most_measured(self.tries) + 1
        best = search.best(self.tries)
        if not search.results:
            # Planning found no candidate. If the search must end now, planning was cut short.
            self._stop.check()
        if self.request.limit_bytes is None or best is None:
            best = self._try_no_budget(pool, list(search.results.values()), best) or best
        if best is None:
            raise self._refusal(pool)
        return best if best.is_final else replace(best, compiled=self.backend.compile(best.rewritten, is_final=True))

    def _rounds(self, pool: Pool, is_over: Stop) -> Rounds[ModuleCandidate, CompiledRewrite[R, T]]:
        return Rounds(
            pool=pool,
            limit=self.request.limit_bytes,
            plain_needs=(1.0, float(self.request.plain_bytes)),
            measure=self._measure,
            stop=self._stop.check,
            is_over=is_over,
            measured_needs=pool.measured.setdefault(self.backend.key, {}),
        )

    def _measure(self, candidate: ModuleCandidate, expected_bytes: float) -> tuple[float, CompiledRewrite[R, T]] | None:
        """Rewrite the step according to a candidate, and compile the result. Return the temporaries of the compiled
        step in bytes, and the compiled rewrite; None if the plans do not apply."""
        compiles, most = len(self.rounds), self._most_compiled
        first, end = (PREPARATION_SHARE + (1 - PREPARATION_SHARE) * count / most for count in (compiles, compiles + 1))
        self.request.line.begin(f"plan {compiles + 1} of at most {most}", first, end)
        rewritten = self.backend.rewrite(candidate)
        if rewritten is None:
            self.rounds.append(CompiledCandidate(candidate.words, int(expected_bytes), None, 0, None))
            return None
        compiled = self._compile(rewritten, candidate.words, int(expected_bytes))
        return float(compiled.measured_bytes), compiled

    def _compile(self, rewritten: R, words: str, predicted_bytes: int | None) -> CompiledRewrite[R, T]:
        """Compile a rewritten step, and record it under a description and its predicted temporaries."""
        # With a limit, a candidate that is expected to fit is likely to run. For `min`, the first candidate is likely
        # to run, because it is predicted to be the smallest. All other candidates are compiled only to measure them.
        limit_bytes = self.request.limit_bytes
        is_final = not self.rounds
        if limit_bytes is not None:
            is_final = predicted_bytes is not None and predicted_bytes <= limit_bytes
        compiled = self.backend.compile(rewritten, is_final)
        measured_bytes = self.backend.measured_bytes(compiled)
        fits = None if limit_bytes is None else measured_bytes <= limit_bytes
        self.rounds.append(CompiledCandidate(words, predicted_bytes, measured_bytes, rewritten.extra_flops, fits))
        place = self.request.name, len(self.rounds), self._most_compiled
        self.request.log.info("%s: %d of %d: %s", *place, self.rounds[-1])
        return CompiledRewrite(rewritten, compiled, measured_bytes, is_final)

    def _try_no_budget(
        self, pool: Pool, tried: Sequence[CompiledRewrite[R, T]], best: CompiledRewrite[R, T] | None
    ) -> CompiledRewrite[R, T] | None:
        """Compile the choice that is made without a budget. Return it if it is better than all candidates so far;
        otherwise None.

        With a limit, this choice is better if it is within the limit. For the budget `min`, it is better if it needs
        less memory than the best candidate. Therefore `min` never needs more memory than the choice without a budget,
        and a budget that this choice meets is never refused, even after a time limit. The measured size is stored in
        the pool for later searches.
        """
        if best is not None and self._stop.check():
            return None
        most_bytes = inf if self.request.limit_bytes is None else self.request.limit_bytes
        if best is not None:
            most_bytes = best.measured_bytes - 1
        if pool.unbudgeted.get(self.backend.key, 0.0) > most_bytes:
            return None
        rewritten = self.backend.rewrite(None)
        if rewritten is None:
            return None
        alike = next((compiled for compiled in tried if compiled.work == work_key(rewritten)), None)
        ordinary = alike or self._compile(rewritten, WITHOUT_BUDGET, None)
        pool.unbudgeted[self.backend.key] = float(ordinary.measured_bytes)
        return ordinary if alike is None and ordinary.measured_bytes <= most_bytes else None

    def _refusal(self, pool: Pool) -> BudgetNotReached:
        is_interrupted = self._stop.has_stopped and Interrupt.count > self.interrupts
        failed = FailedSearch(
            module=self.request.module,
            budget=self.request.budget,
            limit_bytes=self.request.limit_bytes or 0,
            plain_bytes=self.request.plain_bytes,
            rounds=self.rounds,
            is_interrupted=is_interrupted,
            seconds=self.request.time_limit if self._stop.has_stopped and not is_interrupted else None,
        )
        return failed.refusal(pool, self.backend.key)
