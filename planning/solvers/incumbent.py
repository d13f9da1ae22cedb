"""The incumbent of a search: the best copies so far, according to the evaluation of their flat order alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from time import perf_counter

from .problem import Pair, Problem
from .provenance import Provenance
from .result import Progress, Stop, never
from .sequence import Evaluation, evaluate, sequence_of

KEPT_PLANS = 3
"""Number of best plans that are kept as starts of further searches."""
FoundPlan = tuple[Provenance, frozenset[Pair]]
"""Copies with their provenance."""
NOT_FOUND = Provenance("no plan")
"""The provenance before any plan is found."""


def silent(_: str) -> None:
    """Ignore a progress message."""
    return None


@dataclass
class Incumbent:
    """The incumbent of a search: `offer` keeps copies that are within the budget and cheaper than the best so far.

    Attributes:
        problem, budget: The problem, and its budget in bytes.
        seconds: The time limit; None for no limit.
        progress: The callback for messages.
        interrupt: An external condition that ends the search.
        pairs, evaluation, provenance: The best copies, their evaluation, and how they were found.
        began: The start of the search, as `perf_counter` gives it.
        cut_short: Whether the search was ended by the time limit or the interrupt.
        best_plans: The best `KEPT_PLANS` plans, each with its provenance.
    """

    problem: Problem
    budget: int
    seconds: float | None = None
    progress: Progress = silent
    interrupt: Stop = never
    pairs: frozenset[Pair] | None = None
    evaluation: Evaluation | None = None
    provenance: Provenance = NOT_FOUND
    began: float = field(default_factory=perf_counter)
    cut_short: bool = False
    best_plans: list[FoundPlan] = field(default_factory=list[FoundPlan])

    def offer(self, pairs: Collection[Pair] | None, provenance: Provenance) -> bool:
        """Evaluate copies, and keep them if they are the best so far.

        Args:
            pairs: The copies; None for none, which is refused.
            provenance: The solver and the improvements that found them.

        Returns:
            Whether the copies are within the budget, and cheaper than all before.
        """
        if pairs is None:
            return False
        evaluation = evaluate(self.problem, sequence_of(self.problem, pairs))
        if evaluation.peak_bytes > self.budget:
            return False
        self._remember(frozenset(pairs), provenance)
        if self.evaluation is not None and evaluation.extra_cost >= self.evaluation.extra_cost:
            return False
        self.pairs, self.evaluation, self.provenance = frozenset(pairs), evaluation, provenance
        self.progress(f"{provenance}: extra cost {self.percent:.4f} %, {self.elapsed_seconds:.1f} s")
        return True

    def _remember(self, pairs: frozenset[Pair], provenance: Provenance) -> None:
        if all(pairs != other for _, other in self.best_plans):
            self.best_plans.append((provenance, pairs))
            self.best_plans.sort(key=lambda plan: self.problem.cost_of(plan[1]))
            del self.best_plans[KEPT_PLANS:]

    @property
    def percent(self) -> float:
        """The extra cost of the best plan in percent of the plain step; infinite without a plan."""
        return float("inf") if self.evaluation is None else self.problem.percent(self.evaluation.extra_cost)

    @property
    def elapsed_seconds(self) -> float:
        """The seconds since the start of the search."""
        return perf_counter() - self.began

    @property
    def remaining_seconds(self) -> float | None:
        """The seconds until the time limit; None without one."""
        return None if self.seconds is None else max(0.0, self.seconds - self.elapsed_seconds)

    def should_stop(self) -> bool:
        """Return whether the time limit or the interrupt ends the search."""
        if self.interrupt() or (self.seconds is not None and self.elapsed_seconds > self.seconds):
            self.cut_short = True
        return self.cut_short
