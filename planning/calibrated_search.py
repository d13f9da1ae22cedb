"""Search among candidate plans whose predicted needs are cheap and whose measured needs are expensive.

A *need* is the memory that a plan takes. Measurements correct the predictions: by linear interpolation between two
measured plans, and in proportion outside them, which corrects a model that is wrong by a factor and a constant.
Plans of one kind have similar errors, so each kind is interpolated between its own measurements. A kind without
measurements is interpolated between the measurements of all other kinds. If no remaining candidate is predicted to fit,
the predictions of kinds without a measurement are used without correction, except for the last try.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial

CAREFUL = 0.95
"""The last plan is tried only if its predicted need is at most this share of the limit."""
WORTH = 0.97
"""Another plan is tried only if its extra work is below this share of the best plan's."""
AS_CHEAP = 1.03
"""Plans up to this multiple of the least extra work count as equally cheap; the lowest predicted need is tried
first."""
HOPE = 1.1
"""In a search for the least need, a plan is tried only if its predicted need is at most this multiple of the least need
so far."""

Ratio = Callable[["Prediction"], float]
"""The expected need as a multiple of the limit; infinite in a search for the least need."""


@dataclass(frozen=True)
class Prediction:
    """The predicted need of a plan, and its extra work. Plans of equal `kind` have similar prediction errors."""

    need: float
    work: float
    kind: Hashable


@dataclass
class CalibratedSearch:
    """The state of a search.

    Attributes:
        choices: The predictions of the candidates.
        limit: The maximum need; 0 to search for the least need, with `least` as the result.
        plain: The predicted and the measured need of the unchanged step.
        measured: The measured need of each tried candidate, also of earlier searches; infinite if it cannot be
            measured.
    """

    choices: Sequence[Prediction]
    limit: float
    plain: tuple[float, float]
    measured: dict[int, float] = field(default_factory=dict[int, float])
    _last: int | None = None

    @property
    def best(self) -> int | None:
        """The measured candidate within the limit that has the least work."""
        within = [index for index, need in self.measured.items() if need <= self.limit]
        return min(within, key=lambda index: (self.choices[index].work, self.measured[index]), default=None)

    @property
    def least(self) -> int | None:
        """The measured candidate with the least need, then the least work; None if none could be measured."""
        feasible = [index for index, need in self.measured.items() if need < float("inf")]
        return min(feasible, key=lambda index: (self.measured[index], self.choices[index].work), default=None)

    def next(self, left: int) -> int | None:
        """Return the candidate to try when `left` tries remain; None if no candidate is promising."""
        if left <= 0:
            return None
        best = self.best
        untried = [index for index in range(len(self.choices)) if index not in self.measured]
        if best is not None:
            untried = [index for index in untried if self.choices[index].work < WORTH * self.choices[best].work]
        limit = self._limit(left)
        needs = {index: self.expected(self.choices[index]) for index in untried}
        within = [index for index in untried if needs[index] <= limit]
        if not within and left > 1:
            within = [index for index in self.unexplored(limit) if index in needs]
        if within:
            most = AS_CHEAP * min(self.choices[index].work for index in within)
            cheap = [index for index in within if self.choices[index].work <= most]
            return min(cheap, key=lambda index: (needs[index], self.choices[index].work))
        if best is not None:
            return None
        # If none should fit, prefer more work among equal needs: it may save bytes that the model does not predict.
        sign = -1 if self.limit else 1
        index = min(untried, key=lambda index: (needs[index], sign * self.choices[index].work), default=None)
        return None if not self.limit and index is not None and self._is_hopeless(needs[index]) else index

    def unexplored(self, limit: float) -> list[int]:
        """Return the candidates of kinds without a measurement whose uncorrected predictions are within the limit."""
        kinds = {self.choices[index].kind for index in self.measured}
        others = [index for index, choice in enumerate(self.choices) if choice.kind not in kinds]
        return [index for index in others if self._interpolate(self.choices[index], []) <= limit]

    def _is_hopeless(self, need: float) -> bool:
        """Return whether a search for the least need should end: the last try was no improvement, or this prediction is
        far above the least need."""
        least = self.least
        return least is not None and (self._last not in (None, least) or need > HOPE * self.measured[least])

    def _ratio(self, left: int, candidate: Prediction) -> float:
        limit = self._limit(left)
        return self.expected(candidate) / limit if limit else float("inf")

    def _limit(self, left: int) -> float:
        """Return the maximum prediction for the next try when `left` tries remain."""
        return self.limit * (CAREFUL if left == 1 and self.best is None else 1.0)

    def expected(self, candidate: Prediction) -> float:
        """Return the corrected prediction of the need."""
        feasible = [index for index, need in self.measured.items() if need < float("inf")]
        same_kind = [index for index in feasible if self.choices[index].kind == candidate.kind]
        return self._interpolate(candidate, same_kind or feasible)

    def _interpolate(self, candidate: Prediction, through: Sequence[int]) -> float:
        """Interpolate between the measured candidates `through` and the plain step."""
        points = sorted([*((self.choices[index].need, self.measured[index]) for index in through), self.plain])
        below = [point for point in points if point[0] <= candidate.need]
        above = [point for point in points if point[0] > candidate.need]
        if not below or not above:
            predicted, measured = below[-1] if below else above[0]
            return measured * candidate.need / predicted if predicted else measured
        (low, need_at_low), (high, need_at_high) = below[-1], above[0]
        return need_at_low + (need_at_high - need_at_low) * (candidate.need - low) / (high - low)

    def run(
        self,
        needed: Callable[[int], float | None],
        tries: int,
        search: Callable[[Ratio], Sequence[Prediction]] | None = None,
    ) -> int | None:
        """Try up to `tries` candidates.

        Args:
            needed: Measures a candidate, given by its index. Returns its need, or None if it cannot be measured.
            search: Called before each try with the ratio to the limit. Returns the candidates so far, with new ones
                appended.

        Returns:
            The index of the best candidate; None if no measured one is within the limit.
        """
        for left in range(tries, 0, -1):
            if search is not None:
                self.choices = search(partial(self._ratio, left))
            index = self.next(left)
            if index is None:
                break
            need, self._last = needed(index), index
            self.measured[index] = float("inf") if need is None else need
        return self.best
