"""The budget loop: take the candidate with the least work that is expected to fit, measure it, correct the forecasts.

The caller supplies the function that measures a candidate: by a memory model (`within.py`) or by a compiler
(`frontends/jax/budget.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from ...planning.calibrated_search import CalibratedSearch
from ...planning.solvers.result import Stop
from ..pool import ModuleCandidate, Pool

T = TypeVar("T")
MORE = 2
"""Number of candidates that are measured before a search ends without a result."""


@dataclass
class Rounds(Generic[T]):
    """The search among the candidates of a pool.

    Attributes:
        pool: The candidates, with their forecasts; others are added while the search runs.
        limit: The maximum need of a candidate, in the unit of `measure`; None for the budget `min`.
        plain: The need of the plain step: its forecast, and its measurement.
        measure: Rewrites and measures a candidate, whose expected need is given. Returns what it needs, and a result to
            keep; None if its plans do not apply.
        stop: Ends the search once there is a result. is_over: ends the planning of more candidates.
        known: Needs that earlier searches among these candidates measured, by positions in the pool; those of this one
            are added.
        results: Those of the candidates that were measured, by their positions in the pool.
    """

    pool: Pool
    limit: float | None
    plain: tuple[float, float]
    measure: Callable[[ModuleCandidate, float], tuple[float, T] | None]
    stop: Stop
    is_over: Stop
    known: dict[int, float] = field(default_factory=dict[int, float])
    results: dict[int, T] = field(default_factory=dict[int, T])

    def best(self, rounds: int) -> T | None:
        """Measure at most `rounds` candidates beyond the known ones.

        Before a search gives up, it measures up to `MORE` candidates of kinds without a measurement that should fit.
        Returns the result within the limit with the least work, or for the budget `min` the one that needs least; None
        if there is none."""
        search = CalibratedSearch(self.pool.predictions, self.limit or 0.0, self.plain, dict(self.known))

        def needed(position: int) -> float | None:
            if self.results and self.stop():
                return None
            measured = self.measure(self.pool.candidates[position], search.expected(search.choices[position]))
            if measured is None:
                return None
            need, self.results[position] = measured
            self.known[position] = need
            return need

        search.run(needed, rounds, partial(self.pool.search, stop=self.is_over))
        if self.limit and search.best is None and search.unexplored(self.limit):
            search.run(needed, MORE)
        while (best := search.least if self.limit is None else search.best) is not None and best not in self.results:
            # Only an earlier search has a result for it.
            need = needed(best)
            search.measured[best] = float("inf") if need is None else need
        return None if best is None else self.results[best]
