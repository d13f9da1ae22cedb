"""The incumbent of a search: the best copies so far. Copies are compared only by the evaluation of their flat order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf
from time import perf_counter

from ...support.interrupts import seconds_left
from ...support.units import format_percent
from .problem import Pair, Problem
from .provenance import Provenance
from .result import Progress, Stop, never_stop
from .sequence import Evaluation, evaluate, sequence_of

MAX_KEPT_PLANS = 3
"""Maximum number of best plans that are stored as starts of further searches. Each search takes time."""
FoundPlan = tuple[Provenance, frozenset[Pair]]
"""Copies with their provenance."""
NOT_FOUND = Provenance("no plan")
"""The provenance before any plan is found."""


def ignore_progress(_: str) -> None:
    """Ignore a progress message."""
    return None


@dataclass
class Incumbent:
    """The best copies that a search has found so far. `offer` replaces them with copies that are cheaper and within the
    budget.

    Attributes:
        problem, budget: The problem, and its budget in bytes.
        seconds: The time limit; None for no limit.
        progress: The callback for messages.
        interrupt: An external condition that ends the search.
        pairs, evaluation, provenance: The best copies, their evaluation and their provenance.
        began: The start time of the search, from `perf_counter`.
        cut_short: Whether the time limit or the interrupt has ended the search.
        best_plans: The best `MAX_KEPT_PLANS` plans, each with its provenance.
    """

    problem: Problem
    budget: int
    seconds: float | None = None
    progress: Progress = ignore_progress
    interrupt: Stop = never_stop
    pairs: frozenset[Pair] | None = None
    evaluation: Evaluation | None = None
    provenance: Provenance = NOT_FOUND
    began: float = field(default_factory=perf_counter)
    cut_short: bool = False
    best_plans: list[FoundPlan] = field(default_factory=list[FoundPlan])

    @staticmethod
    def until(problem: Problem, budget: int, interrupt: Stop) -> Incumbent:
        """Return an incumbent for a search that ends at the interrupt or at the time limit of the current search."""
        seconds = seconds_left()
        return Incumbent(problem, budget, None if seconds == inf else seconds, interrupt=interrupt)

    def offer(self, pairs: Collection[Pair] | None, provenance: Provenance) -> bool:
        """Evaluate copies, and make them the incumbent if they are the best so far.

        Args:
            pairs: The copies; None if a solver found none, which changes nothing.
            provenance: The solver and the improvements that found the copies.

        Returns:
            Whether the copies become the incumbent: they are within the budget, and cheaper than the previous
                incumbent.
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
        self.progress(f"{provenance}: extra cost {format_percent(self.percent)} %, {self.elapsed_seconds:.1f} s")
        return True

    def _remember(self, pairs: frozenset[Pair], provenance: Provenance) -> None:
        if all(pairs != other for _, other in self.best_plans):
            self.best_plans.append((provenance, pairs))
            self.best_plans.sort(key=lambda plan: self.problem.cost_of(plan[1]))
            del self.best_plans[MAX_KEPT_PLANS:]

    @property
    def percent(self) -> float:
        """The extra cost of the best plan, in percent of the cost of the plain step; infinite without a plan."""
        return float("inf") if self.evaluation is None else self.problem.percent(self.evaluation.extra_cost)

    @property
    def elapsed_seconds(self) -> float:
        """The seconds since the start of the search."""
        return perf_counter() - self.began

    @property
    def remaining_seconds(self) -> float | None:
        """The seconds until the time limit; None without a time limit."""
        return None if self.seconds is None else max(0.0, self.seconds - self.elapsed_seconds)

    def should_stop(self) -> bool:
        """Return whether the time limit or the interrupt ends the search."""
        if self.interrupt() or (self.seconds is not None and self.elapsed_seconds > self.seconds):
            self.cut_short = True
        return self.cut_short
