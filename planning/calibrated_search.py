"""Search over candidate plans with expensive measurements and a calibrated cost model.

Predicted needs are corrected by measured ones: by linear interpolation between two measured plans, in proportion
outside of them. Plans of one kind have similar errors, so each kind is interpolated between its own measurements; a
kind without measurements uses those of the others. This corrects a model that is wrong by a factor and by a constant.
If no remaining candidate should fit, the predictions of untried kinds are used without correction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

CAREFUL = 0.95
"""Share of the limit that the last try may be predicted at."""
WORTH = 0.999
"""Share of the extra work of the best plan so far that another try must be below."""


@dataclass(frozen=True)
class Prediction:
    """The predicted need of a plan, and its extra work; `kind`: its planner and its segments."""

    need: float
    work: float
    kind: str


@dataclass
class CalibratedSearch:
    """The search.

    limit: what a plan may need; 0 to search for the least need, with `least` as the result.
    plain: the predicted and the measured need of the step without a plan.
    measured: the need of each tried candidate.
    """

    choices: Sequence[Prediction]
    limit: float
    plain: tuple[float, float]
    measured: dict[int, float] = field(default_factory=dict[int, float])

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
        """The candidate to try when `left` tries remain; None if no candidate is promising."""
        if left <= 0:
            return None
        best = self.best
        untried = [index for index in range(len(self.choices)) if index not in self.measured]
        if best is not None:
            untried = [index for index in untried if self.choices[index].work < WORTH * self.choices[best].work]
        limit = self.limit * (CAREFUL if left == 1 and best is None else 1.0)
        needs = {index: self.expected(self.choices[index]) for index in untried}
        within = [index for index in untried if needs[index] <= limit]
        if not within:
            kinds = {self.choices[index].kind for index in self.measured}
            others = [index for index in untried if self.choices[index].kind not in kinds]
            within = [index for index in others if self._interpolate(self.choices[index], []) <= limit]
        if within:
            return min(within, key=lambda index: (self.choices[index].work, needs[index]))
        if best is not None:
            return None
        # If none should fit, prefer more work among equal needs: it may save bytes that the model does not predict.
        sign = -1 if self.limit else 1
        return min(untried, key=lambda index: (needs[index], sign * self.choices[index].work), default=None)

    def expected(self, candidate: Prediction) -> float:
        """The corrected prediction of the need."""
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

    def run(self, needed: Callable[[int], float | None], tries: int) -> int | None:
        """Try up to `tries` candidates, and return the best one. `needed`: measures a candidate; None if it fails."""
        for left in range(tries, 0, -1):
            index = self.next(left)
            if index is None:
                break
            need = needed(index)
            self.measured[index] = float("inf") if need is None else need
        return self.best
