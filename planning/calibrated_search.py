"""Search among candidate plans whose memory needs are cheap to predict and expensive to measure.

A *need* is the memory that a plan takes. Measurements correct the predictions: between two measured plans by linear
interpolation, and outside the measured range in proportion to the nearest measurement. Interpolation corrects a model
that is off by a constant factor and offset. Plans of one kind have similar errors, so each kind is interpolated between
its own measurements. A kind without measurements is interpolated between the measurements of all other kinds. If no
untried candidate is predicted to fit, and more than one try remains, kinds without a measurement use their uncorrected
predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

LAST_TRY_SHARE = 0.95
"""The last try is used only for a plan whose predicted need is at most this share of the limit. No try is left to
correct an error in the prediction, so a plan with a margin is preferred."""
CHEAPER_SHARE = 0.97
"""A further plan is tried only if its extra work is below this share of the extra work of the best plan so far. A
smaller gain is not worth the time of a measurement."""
EQUAL_WORK_FACTOR = 1.03
"""Plans whose extra work is at most this multiple of the minimum count as equally cheap; among them, the plan with the
lowest predicted need is tried first."""
PROMISING_FACTOR = 1.1
"""In a search for the lowest need, a plan is tried only if its predicted need is at most this multiple of the lowest
measured need. An error of the prediction by a larger factor is unlikely."""
MAX_FAILURES = 2
"""A search for the lowest need ends after this number of successive tries without an improvement. If a single failure
ended the search, the second of two similar plans would end it before a plan of a different kind is tried."""

Ratio = Callable[["Prediction"], float]
"""A function that maps the prediction for a plan to its expected need, as a multiple of the limit. For the limit 0,
and in a search for the lowest need, the result is infinite."""


@dataclass(frozen=True)
class Prediction:
    """The predicted memory and extra work of a candidate plan.

    Attributes:
        need: The predicted memory, in the unit of the limit: bytes, or a share of the plain step's memory.
        work: The extra work, in any unit.
        kind: The kind of the plan; plans of one kind have similar prediction errors.
    """

    need: float
    work: float
    kind: Hashable


@dataclass
class CalibratedSearch:
    """The state of a search. Candidates are identified by their indices in `choices`.

    Attributes:
        choices: The predictions of the candidates.
        limit: The maximum need; None to search for the candidate with the lowest need (`least`).
        plain: The predicted need and the measured need of the unchanged step.
        measured: The measured need of each tried candidate, including candidates of earlier searches; infinite if it
            cannot be measured.
    """

    choices: Sequence[Prediction]
    limit: float | None
    plain: tuple[float, float]
    measured: dict[int, float] = field(default_factory=dict[int, float])
    _failures: int = 0

    @property
    def best(self) -> int | None:
        """The measured candidate with the least work among those within the limit; None if there is no such candidate,
        or no limit."""
        if self.limit is None:
            return None
        within = [index for index, need in self.measured.items() if need <= self.limit]
        return min(within, key=lambda index: (self.choices[index].work, self.measured[index]), default=None)

    @property
    def least(self) -> int | None:
        """The measured candidate with the lowest need; among equal needs, the one with the least work. None if no
        candidate could be measured."""
        feasible = [index for index, need in self.measured.items() if need < float("inf")]
        return min(feasible, key=lambda index: (self.measured[index], self.choices[index].work), default=None)

    def next_candidate(self, tries_left: int) -> int | None:
        """Return the candidate to try next when `tries_left` tries remain; None if no candidate is promising."""
        if tries_left <= 0:
            return None
        best = self.best
        untried = [index for index in range(len(self.choices)) if index not in self.measured]
        if best is not None:
            untried = [index for index in untried if self.choices[index].work < CHEAPER_SHARE * self.choices[best].work]
        needs = {index: self.expected_need(self.choices[index]) for index in untried}
        if within := self._expected_within(needs, tries_left):
            return self._cheapest(within, needs)
        return self._lowest(untried, needs) if best is None else None

    def _expected_within(self, needs: Mapping[int, float], tries_left: int) -> list[int]:
        """Return the untried candidates whose expected need is within the limit. If there are none, and this is not the
        last try, return the unexplored candidates. Without a limit, return no candidates.

        `needs`: the expected needs of the untried candidates.
        """
        limit = self._limit(tries_left)
        if limit is None:
            return []
        within = [index for index, need in needs.items() if need <= limit]
        if not within and tries_left > 1:
            within = [index for index in self.unexplored_candidates(limit) if index in needs]
        return within

    def _cheapest(self, candidates: Sequence[int], needs: Mapping[int, float]) -> int:
        """Return the candidate with the lowest need among the candidates with nearly the least work."""
        most = EQUAL_WORK_FACTOR * min(self.choices[index].work for index in candidates)
        cheap = [index for index in candidates if self.choices[index].work <= most]
        return min(cheap, key=lambda index: (needs[index], self.choices[index].work))

    def _lowest(self, candidates: Sequence[int], needs: Mapping[int, float]) -> int | None:
        """Return the candidate with the lowest need if no candidate is expected to fit; None if no candidate is
        promising.

        With a limit, prefer the candidate with the most work among equal needs: its copies may free bytes that the
        model does not predict.
        """
        sign = 1 if self.limit is None else -1
        index = min(candidates, key=lambda index: (needs[index], sign * self.choices[index].work), default=None)
        is_hopeless = self.limit is None and index is not None and self._is_hopeless(needs[index])
        return None if is_hopeless else index

    def unexplored_candidates(self, limit: float) -> list[int]:
        """Return the candidates of kinds without a measurement whose uncorrected predictions are within the limit."""
        kinds = {self.choices[index].kind for index in self.measured}
        others = [index for index, choice in enumerate(self.choices) if choice.kind not in kinds]
        return [index for index in others if self._interpolate(self.choices[index], []) <= limit]

    def _is_hopeless(self, need: float) -> bool:
        """Return whether a search for the lowest need should end: the last tries brought no improvement, or the
        predicted need is far above the lowest measured one."""
        least = self.least
        return least is not None and (self._failures >= MAX_FAILURES or need > PROMISING_FACTOR * self.measured[least])

    def _ratio(self, tries_left: int, candidate: Prediction) -> float:
        """Return the expected need of a candidate, as a multiple of the limit, when `tries_left` tries remain."""
        limit = self._limit(tries_left)
        if limit is None or limit == 0:
            return float("inf")
        return self.expected_need(candidate) / limit

    def _limit(self, tries_left: int) -> float | None:
        """Return the maximum expected need for the next try when `tries_left` tries remain; None without a limit."""
        if self.limit is None:
            return None
        return self.limit * (LAST_TRY_SHARE if tries_left == 1 and self.best is None else 1.0)

    def expected_need(self, candidate: Prediction) -> float:
        """Return the predicted need of a candidate, corrected by the measurements."""
        feasible = [index for index, need in self.measured.items() if need < float("inf")]
        same_kind = [index for index in feasible if self.choices[index].kind == candidate.kind]
        return self._interpolate(candidate, same_kind or feasible)

    def _interpolate(self, candidate: Prediction, references: Sequence[int]) -> float:
        """Return the need of a candidate by linear interpolation between points (predicted need, measured need). There
        is a point for each measured candidate in `references`, and one for the plain step."""
        points = sorted([*((self.choices[index].need, self.measured[index]) for index in references), self.plain])
        below = [point for point in points if point[0] <= candidate.need]
        above = [point for point in points if point[0] > candidate.need]
        if not below or not above:
            predicted, measured = below[-1] if below else above[0]
            return measured * candidate.need / predicted if predicted else measured
        (x0, y0), (x1, y1) = below[-1], above[0]
        return y0 + (y1 - y0) * (candidate.need - x0) / (x1 - x0)

    def run(
        self,
        measure: Callable[[int], float | None],
        tries: int,
        search: Callable[[Ratio], Sequence[Prediction]] | None = None,
    ) -> int | None:
        """Try up to `tries` candidates.

        Args:
            measure: Measures a candidate, given by its index. Returns its need, or None if it cannot be measured.
            search: Called before each try with a `Ratio`. Returns the predictions of all candidates so far, with new
                ones appended.

        Returns:
            The index of the best candidate; None if no measured candidate is within the limit.
        """
        for tries_left in range(tries, 0, -1):
            if search is not None:
                self.choices = search(partial(self._ratio, tries_left))
            index = self.next_candidate(tries_left)
            if index is None:
                break
            self.record(index, measure(index))
            self._failures = 0 if self.least == index else self._failures + 1
        return self.best

    def record(self, index: int, need: float | None) -> None:
        """Store the measured need of a candidate; None if it cannot be measured."""
        self.measured[index] = float("inf") if need is None else need
