"""A budget that holds on the real compiler: plan, compile, read what XLA allocates, correct the model, plan again.

The model of XLA:CPU predicts the temporaries of every candidate. Of those predicted to fit, the one with the least
extra work is compiled. Its measured size corrects the predictions of the others (`CalibratedSearch`). This repeats
until no cheaper candidate is predicted to fit, or `COMPILES` candidates are compiled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import jax
from xdsl.dialects.builtin import ModuleOp

from ...driver.api import Rewritten, rewrite
from ...driver.verified import NotProved
from ...options.recompute_options import RecomputeOptions
from ...planning.solvers.effort import SECONDS_AS_PYTHON, SLOW, is_compiled, limited
from ...planning.solvers.result import Stop
from ...search.budget.rounds import Rounds
from ...search.checked_options import with_moves
from ...search.pool import ModuleCandidate, Pool, pool_of
from ...support.diagnostics import Refusal
from ...support.interrupts import stopping
from ...support.progress import ProgressLine
from ...support.units import MINIMUM, budget_text, format_bytes, is_share, parse_budget, readable_bytes
from ...transforms.plans.limit_segments import selection_without_budgets
from ...transforms.take_marks import take_marks
from .allocation import fixed_bytes, reported_bytes, temporary_bytes
from .compiler_options import MEASURING

_JAX: Any = jax
"""JAX's own types are partly unknown to type checkers."""
COMPILES = 4
"""The maximum number of rewritten steps that are compiled; the plain step is not counted."""
DEVICE = "device"
CompileModule = Callable[[ModuleOp, Mapping[str, Any]], jax.stages.Compiled]


@dataclass(frozen=True)
class Compilers:
    """`plain`: compiles the plain step. `module`: a rewritten step, with these compiler options beside its own. `key`:
    equal for compilers that measure the same."""

    plain: Callable[[], jax.stages.Compiled]
    module: CompileModule
    key: str


BEFORE_PLANS = 0.4
"""The share of the time that the predictions take, roughly, before the first candidate is compiled."""
_LOG = logging.getLogger("recompute.jax")


@dataclass(frozen=True)
class Round:
    """A candidate that was compiled.

    Attributes:
        words: A description of the candidate.
        prediction: Its temporaries in bytes, predicted by the model; None for the choice without a budget.
        needs: Its temporaries in bytes, measured by the compiler; None if the plan could not be applied.
        extra_flops: Its extra FLOPs.
        fits: Whether it is within the budget; None for the budget `min`.
    """

    words: str
    prediction: int | None
    needs: int | None
    extra_flops: int
    fits: bool | None

    def __str__(self) -> str:
        if self.needs is None:
            return f"{self.words}: cannot be applied"
        verdict = {True: ", within the budget", False: ", above the budget", None: ""}[self.fits]
        predicted = "" if self.prediction is None else f"{format_bytes(self.prediction)} predicted, "
        needs = f"{format_bytes(self.needs)} by the compiler{verdict}"
        return f"{self.words}: {predicted}{needs}; {self.extra_flops:.3g} FLOPs more"


@dataclass(frozen=True)
class BudgetedCompile:
    """A step compiled within a budget.

    Attributes:
        budget: The budget as the user wrote it.
        temporaries: The bytes that it leaves for temporaries; None for the budget `min`.
        plain: Temporaries of the plain step in bytes.
        rounds: The candidates that were compiled.
        rewritten: The best of them; None if the plain step fits.
        compiled: That step, or the plain one, compiled.
        is_complete: Whether the search was not ended by a time limit or by Ctrl-C.
    """

    budget: str
    temporaries: int | None
    plain: int
    rounds: tuple[Round, ...]
    rewritten: Rewritten | None
    compiled: jax.stages.Compiled
    is_complete: bool = True

    @property
    def nothing_to_do(self) -> str:
        return f"nothing to do: the plain step needs {self.plain} bytes of temporaries, within the budget {self.budget}"


def record_of_within(result: BudgetedCompile) -> dict[str, Any]:
    """Describe how a budget was kept, as values of JSON, without the compiled step and its rewrite."""
    record = {name: getattr(result, name) for name in ("budget", "temporaries", "plain")}
    needs = temporary_bytes(result.compiled)
    return {**record, "rounds": [asdict(compiled) for compiled in result.rounds], "needs": needs}


def within_from(
    record: Mapping[str, Any], rewritten: Rewritten | None, compiled: jax.stages.Compiled
) -> BudgetedCompile | None:
    """Return the result of a record, for the step compiled anew; None if that does not need the bytes of the record."""
    if temporary_bytes(compiled) != record["needs"]:
        return None
    rounds = tuple([Round(**compiled_before) for compiled_before in record["rounds"]])
    return BudgetedCompile(record["budget"], record["temporaries"], record["plain"], rounds, rewritten, compiled)


def checked_budget(budget: Any, caller: str = "recompute.jax.jit") -> str:
    """Return the option `budget` as text. Raises `TypeError` for another type, and `ValueError` for an invalid budget.

    `caller`: the function that messages name."""
    if isinstance(budget, bool) or not isinstance(budget, str | int | float):
        raise TypeError(f"{caller}: budget must be a str, a share or bytes, not {type(budget).__name__}")
    try:
        text = budget_text(budget)
        if text.lower() != DEVICE:
            parse_budget(text, 1)
    except ValueError as error:
        raise ValueError(f'{caller}: {error}; budget="device" takes the free memory of the device') from error
    return text


def within(
    name: str,
    module: ModuleOp,
    options: RecomputeOptions,
    budget: str,
    compilers: Compilers,
    line: ProgressLine,
) -> BudgetedCompile:
    """Compile the step within the budget, or with the best candidate when its time limit or a Ctrl-C ends the search.

    line: The line on which progress is shown. Raises `Refusal` if no compiled candidate keeps the budget, and if the
    compiler or the device reports no sizes.
    """
    plain = compilers.plain()
    plain_bytes = reported_bytes(module, plain, "a budget")
    limit = _temporaries_limit(module, budget, plain, plain_bytes)
    if limit is not None and plain_bytes <= limit and not options.selection.segment_budgets:
        return BudgetedCompile(budget, limit, plain_bytes, (), None, plain)
    with stopping(options.time_limit) as stop:
        return _CompilerSearch(name, module, options, budget, plain_bytes, limit, compilers, line, stop).best()


def device_limit(module: ModuleOp, budget: str, plain: jax.stages.Compiled) -> int | None:
    """Return the bytes of the device that a budget allows, arguments and results included; None for the budget `min`.

    Raises `Refusal` if the compiler or the device reports no sizes, and if arguments and results alone need more.
    """
    limit = _temporaries_limit(module, budget, plain, reported_bytes(module, plain, "a budget"))
    return None if limit is None else limit + fixed_bytes(plain)


def _temporaries_limit(module: ModuleOp, budget: str, plain: jax.stages.Compiled, plain_bytes: int) -> int | None:
    """Return the bytes that the budget leaves for temporaries; None for the budget `min`.

    A share is one of the temporaries of the plain step. A number of bytes covers arguments and results too.
    """
    if budget.lower() == MINIMUM:
        return None
    if budget.lower() != DEVICE and is_share(budget):
        return parse_budget(budget, plain_bytes)
    fixed = fixed_bytes(plain)
    device_bytes = free_bytes(module) if budget.lower() == DEVICE else parse_budget(budget, plain_bytes)
    if device_bytes is None or device_bytes < fixed:
        raise Refusal(
            module,
            f"no plan keeps the budget {budget}, {format_bytes(device_bytes or 0)} of the device: arguments and "
            f"results, which no plan changes, need {readable_bytes(fixed)}",
        )
    return device_bytes - fixed


def free_bytes(module: ModuleOp) -> int:
    """Return the bytes that the device reports as free. Raises `Refusal` if it reports none."""
    device: Any = _JAX.local_devices()[0]
    stats: Any = device.memory_stats()
    if not stats or "bytes_limit" not in stats:
        raise Refusal(module, f'budget="device": {device.platform} does not report its memory: give bytes or a share')
    return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))


def _work(rewritten: Rewritten) -> tuple[int, int]:
    """Return operations and FLOPs that a rewrite adds: equal for equal plans."""
    return rewritten.copies, rewritten.extra_flops


@dataclass(frozen=True)
class _Candidate:
    """A rewritten step, compiled. `is_final`: with the compiler options that it will run with."""

    rewritten: Rewritten
    compiled: jax.stages.Compiled
    is_final: bool


@dataclass
class _CompilerSearch:
    """The search of one step, with the compiler as the measure of `Rounds`.

    `plain_bytes` and `limit`: bytes of temporaries; `limit` is None for the budget `min`. `stop`: ends the search with
    the best candidate so far. `rounds`: the candidates so far."""

    name: str
    module: ModuleOp
    options: RecomputeOptions
    budget: str
    plain_bytes: int
    limit: int | None
    compilers: Compilers
    line: ProgressLine
    stop: Stop
    rounds: list[Round] = field(default_factory=list[Round])

    def best(self) -> BudgetedCompile:
        """Compile candidates and return the best one. Raises `Refusal` if none keeps the budget."""
        is_over, plain = self._is_over(), (1.0, float(self.plain_bytes))
        pool = self._pool(is_over)
        known = pool.measured.setdefault(self.compilers.key, {})
        search = Rounds(pool, self.limit, plain, self._measure, self.stop, is_over, known)
        best = search.best(COMPILES)
        if self.limit is None:
            best = self._ordinary(list(search.results.values()), best) or best
        if best is None:
            raise Refusal(self.module, self._not_reached())
        compiled = best.compiled if best.is_final else self.compilers.module(best.rewritten.module, {})
        is_complete = is_compiled() and not self.stop()
        return BudgetedCompile(
            self.budget, self.limit, self.plain_bytes, tuple(self.rounds), best.rewritten, compiled, is_complete
        )

    def _measure(self, candidate: ModuleCandidate, predicted: float) -> tuple[float, _Candidate] | None:
        """Return the measure of `Rounds`; None if the plans do not apply."""
        done, most = len(self.rounds), self._most_compiles
        self.line.at(f"plan {done + 1} of at most {most}", BEFORE_PLANS + (1 - BEFORE_PLANS) * done / most)
        try:
            rewritten = self._rewritten(candidate)
        except (Refusal, NotProved):
            self.rounds.append(Round(candidate.words, int(predicted), None, 0, None))
            return None
        compiled = self._compiled(rewritten, candidate.words, int(predicted))
        return float(reported_bytes(self.module, compiled.compiled, "a budget")), compiled

    def _compiled(self, rewritten: Rewritten, words: str, predicted: int | None) -> _Candidate:
        # With a limit the last candidate is likely to run; with "min" it is the one predicted to need least.
        is_final = self.limit is not None or not self.rounds
        compiled = self.compilers.module(rewritten.module, {} if is_final else MEASURING)
        needs = reported_bytes(self.module, compiled, "a budget")
        fits = None if self.limit is None else needs <= self.limit
        self.rounds.append(Round(words, predicted, needs, rewritten.extra_flops, fits))
        _LOG.info("%s: %d of %d: %s", self.name, len(self.rounds), self._most_compiles, self.rounds[-1])
        return _Candidate(rewritten, compiled, is_final)

    @property
    def _most_compiles(self) -> int:
        """The most rewritten steps that are compiled. The choice without a budget is one more for the budget `min`."""
        return COMPILES + (self.limit is None)

    def _ordinary(self, tried: Sequence[_Candidate], best: _Candidate | None) -> _Candidate | None:
        """Return the choice without a budget, if it needs less than the best candidate: `min` never needs more
        than it."""
        if tried and self.stop():
            return None
        try:
            rewritten = rewrite(self.module, self.options)
        except (Refusal, NotProved):
            return None
        if not rewritten.copies or any(_work(rewritten) == _work(candidate.rewritten) for candidate in tried):
            return None
        ordinary = self._compiled(rewritten, "as without a budget", None)
        needs = [
            reported_bytes(self.module, candidate.compiled, "a budget") for candidate in (ordinary, best) if candidate
        ]
        return ordinary if needs[0] < min(needs[1:], default=float("inf")) else None

    def _pool(self, is_over: Stop) -> Pool:
        marked = self.module.clone()
        take_marks(marked)
        options = with_moves(marked, self.options)
        if not is_compiled():
            _LOG.warning("%s", SLOW.format(seconds=SECONDS_AS_PYTHON))
        return pool_of(marked, options, is_over)

    def _is_over(self) -> Stop:
        is_over = limited()
        return lambda: is_over() or self.stop()

    def _rewritten(self, candidate: ModuleCandidate) -> Rewritten:
        selection = selection_without_budgets(self.options.selection)
        options = replace(self.options, selection=selection, plan=candidate.plans, loops=candidate.loops)
        rewritten = rewrite(self.module, options)
        if not rewritten.copies:
            raise Refusal(self.module, "nothing is recomputed")
        return rewritten

    def _not_reached(self) -> str:
        """Return the message of the refusal: a line with the smallest size, then a line for each compiled candidate."""
        limit = f"{format_bytes(self.limit or 0)} of {format_bytes(self.plain_bytes)} of temporaries"
        sizes = [candidate.needs for candidate in self.rounds if candidate.needs is not None]
        least = "nothing can be recomputed"
        if sizes:
            least = f"the least of {len(sizes)} compiled needs {readable_bytes(min(sizes))}"
        return "\n  ".join([f"no plan keeps the budget {self.budget}, {limit}: {least}", *map(str, self.rounds)])
