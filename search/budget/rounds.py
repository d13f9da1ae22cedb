"""Measure candidates until one is within a budget. Each round measures the candidate with the least work that is
expected to fit, and corrects the forecasts.

This is the loop of every search whose forecasts are calibrated by measurements. The caller supplies the candidates and
the measure: a memory model (`within.py`), a compiler of modules (`compiled_search.py`), or Inductor
(`frontends/torch/inductor/budget_search.py`). Searches in program order do not use this loop, because their solvers
plan exactly. If the rewritten step exceeds the limit of its plan, they lower the limit by the excess and plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

from ...planning.calibrated_search import CalibratedSearch, Prediction, Ratio
from ...planning.solvers.result import Stop

C = TypeVar("C")
T = TypeVar("T")
C_co = TypeVar("C_co", covariant=True)
MAX_EXTRA_CANDIDATES = 2
"""Maximum number of additional candidates that are measured before a search ends without a result. They are of kinds
without a measurement, whose forecasts are the least certain."""


class CandidatePool(Protocol[C_co]):
    """A collection of candidates. Their positions are stable, because a search only appends candidates."""

    @property
    def candidates(self) -> Sequence[C_co]:
        """The candidates so far."""
        ...

    @property
    def predictions(self) -> Sequence[Prediction]:
        """The forecast of each candidate."""
        ...

    def search(self, ratio: Ratio, stop: Stop) -> Sequence[Prediction]:
        """Add candidates that are expected to fit, and return all forecasts. `ratio`: maps a forecast to the expected
        need of its candidate, as a multiple of the limit."""
        ...


@dataclass(kw_only=True)
class Rounds(Generic[C, T]):
    """The search over the candidates of a pool.

    Attributes:
        pool: The candidates, with their forecasts. More candidates are added while the search runs.
        limit: The maximum need of a candidate, in the unit of `measure`; None for the budget `min`.
        plain_needs: The forecast need and the measured need of the plain step.
        measure: A function that takes a candidate and its expected need, and rewrites and measures the candidate. It
            returns the measured need and a result; None if the plans do not apply.
        stop: A predicate that ends the search once there is a result.
        is_over: A predicate that ends the planning of more candidates.
        measured_needs: The measured needs of candidates, by position in the pool. They include needs that earlier
            searches measured.
        results: The results of the measured candidates, by position in the pool.
        extra_candidates: The maximum number of additional candidates to measure before a search ends without a result.
            They are chosen among the kinds that have no measurement yet.
    """

    pool: CandidatePool[C]
    limit: float | None
    plain_needs: tuple[float, float]
    measure: Callable[[C, float], tuple[float, T] | None]
    stop: Stop
    is_over: Stop
    measured_needs: dict[int, float] = field(default_factory=dict[int, float])
    results: dict[int, T] = field(default_factory=dict[int, T])
    extra_candidates: int = MAX_EXTRA_CANDIDATES

    def most_measured(self, rounds: int) -> int:
        """Return the maximum number of candidates that `best(rounds)` measures.

        In addition to `rounds` candidates, `best` measures candidates of unmeasured kinds before it refuses a limit.
        For the budget `min`, it may measure the best candidate of an earlier search again, because only the need of
        this candidate was stored.
        """
        return rounds + (bool(self.measured_needs) if self.limit is None else self.extra_candidates)

    def best(self, rounds: int) -> T | None:
        """Measure at most `rounds` candidates, not counting measurements of earlier searches. If no candidate is within
        the limit, measure up to `extra_candidates` further candidates of kinds without a measurement.

        Returns:
            The result with the least work within the limit, or, for the budget `min`, the result with the lowest need;
            None if there is no such result.
        """
        search = CalibratedSearch(self.pool.predictions, self.limit, self.plain_needs, dict(self.measured_needs))
        measure, measure_in_time = partial(self._measure, search), partial(self._measure_unless_stopped, search)
        search.run(measure_in_time, rounds, partial(self.pool.search, stop=self.is_over))
        if self.limit is not None and search.best is None and search.unexplored_candidates(self.limit):
            search.run(measure_in_time, self.extra_candidates)
        while (best := search.least if self.limit is None else search.best) is not None and best not in self.results:
            # An earlier search measured this candidate, so this search has no result for it yet.
            search.record(best, measure_in_time(best) if self._has_result() else measure(best))
        return None if best is None else self.results[best]

    def _measure(self, search: CalibratedSearch, position: int) -> float | None:
        """Measure a candidate. Return its need; None if its plans do not apply."""
        result = self.measure(self.pool.candidates[position], search.expected_need(search.choices[position]))
        if result is None:
            return None
        need, self.results[position] = result
        self.measured_needs[position] = need
        return need

    def _measure_unless_stopped(self, search: CalibratedSearch, position: int) -> float | None:
        return None if self.results and self.stop() else self._measure(search, position)

    def _has_result(self) -> bool:
        """Return whether this search has a result within the limit, or, for the budget `min`, any result."""
        return any(self.limit is None or self.measured_needs[position] <= self.limit for position in self.results)
