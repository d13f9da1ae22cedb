"""The loop of all budget searches, with candidates whose needs are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from recompute.planning.calibrated_search import Prediction, Ratio
from recompute.planning.solvers.result import Stop, never_stop
from recompute.search.budget.rounds import MAX_EXTRA_CANDIDATES, Rounds

LIMIT = 60.0
PLAIN = (1.0, 100.0)


@dataclass
class NamedPool:
    """Candidates that are named by letters. `additions`: further candidates, one for each search."""

    predictions: list[Prediction]
    additions: list[Prediction] = field(default_factory=list[Prediction])
    ratios: list[Ratio] = field(default_factory=list[Ratio])

    @property
    def candidates(self) -> Sequence[str]:
        return "abcdefghijkl"[: len(self.predictions)]

    def search(self, ratio: Ratio, stop: Stop) -> Sequence[Prediction]:
        self.ratios.append(ratio)
        if self.additions and not stop():
            self.predictions.append(self.additions.pop(0))
        return self.predictions


@dataclass
class Measure:
    """A measure that looks up needs, and records the candidates with their expected needs. A candidate without a need
    does not apply."""

    needs: Mapping[str, float]
    expected: dict[str, float] = field(default_factory=dict[str, float])

    def __call__(self, candidate: str, expected: float) -> tuple[float, str] | None:
        self.expected[candidate] = expected
        return (self.needs[candidate], candidate.upper()) if candidate in self.needs else None


def one_kind(*needs_and_works: tuple[float, float]) -> NamedPool:
    return NamedPool([Prediction(need, work, "kind") for need, work in needs_and_works])


def rounds_of(
    pool: NamedPool,
    measure: Measure,
    limit: float | None = LIMIT,
    stop: Callable[[], bool] = never_stop,
    is_over: Callable[[], bool] = never_stop,
    measured_needs: dict[int, float] | None = None,
) -> Rounds[str, str]:
    earlier = {} if measured_needs is None else measured_needs
    return Rounds(
        pool=pool, limit=limit, plain_needs=PLAIN, measure=measure, stop=stop, is_over=is_over, measured_needs=earlier
    )


def test_cheapest_fitting_candidate_is_found() -> None:
    measure = Measure({"a": 80.0, "b": 50.0, "c": 20.0})
    rounds = rounds_of(one_kind((0.8, 1), (0.5, 2), (0.2, 3)), measure)
    assert rounds.best(4) == "B"
    assert measure.expected == {"b": pytest.approx(50.0)} and rounds.measured_needs == {1: 50.0}


def test_measurements_correct_the_forecasts() -> None:
    """The first measurement is 30 % above its forecast, so the next candidate has a forecast that is 30 % lower."""
    measure = Measure({"a": 71.5, "b": 66.3, "c": 58.5})
    rounds = rounds_of(one_kind((0.55, 1), (0.51, 2), (0.45, 3)), measure)
    assert rounds.best(4) == "C"
    assert measure.expected == {"a": pytest.approx(55.0), "c": pytest.approx(58.5)}


def test_forecasts_that_the_pool_adds_are_corrected_too() -> None:
    pool = one_kind((0.55, 1))
    pool.additions.append(Prediction(0.45, 2, "kind"))
    measure = Measure({"a": 71.5, "b": 58.5})
    assert rounds_of(pool, measure).best(1) is None, "the pool is searched once for each measurement"
    assert pool.candidates == "ab" and list(measure.expected) == ["a"]
    assert rounds_of(pool, measure, measured_needs={0: 71.5}).best(4) == "B"
    assert pool.ratios[-1](Prediction(0.45, 2, "kind")) == pytest.approx(58.5 / LIMIT)


def test_pool_adds_no_candidates_once_the_search_is_over() -> None:
    pool = one_kind((0.55, 1))
    pool.additions.append(Prediction(0.45, 2, "kind"))
    assert rounds_of(pool, Measure({"a": 71.5, "b": 58.5}), is_over=lambda: True).best(4) is None
    assert pool.candidates == "a"


def test_number_of_measurements_is_limited() -> None:
    measure = Measure(dict.fromkeys("abcdef", 90.0))
    rounds = rounds_of(one_kind(*((0.5 - 0.01 * work, work) for work in range(6))), measure)
    assert rounds.best(2) is None and len(measure.expected) == 2


def test_other_kinds_are_measured_before_a_refusal() -> None:
    measure = Measure(dict.fromkeys("abcdef", 90.0))
    rounds = rounds_of(NamedPool([Prediction(0.5, work, work) for work in range(6)]), measure)
    assert rounds.best(2) is None
    assert len(measure.expected) == 2 + MAX_EXTRA_CANDIDATES == rounds.most_measured(2)


def test_refused_limit_leaves_the_needs_that_were_reached() -> None:
    """Candidates whose plans do not apply are left out."""
    measure = Measure({"a": 95.0, "c": 70.0})
    rounds = rounds_of(one_kind((0.58, 1), (0.35, 2), (0.3, 3)), measure)
    assert rounds.best(6) is None
    assert list(measure.expected) == ["a", "b", "c"]
    assert rounds.results == {0: "A", 2: "C"} and rounds.measured_needs == {0: 95.0, 2: 70.0}


@pytest.mark.parametrize(("most_measured", "best"), [(2, "B"), (3, "C")])
def test_stopped_search_returns_the_best_result_so_far(most_measured: int, best: str) -> None:
    """`b` is within the limit, and `c` has less work."""
    measure = Measure({"a": 80.0, "b": 30.0, "c": 55.0})
    pool = one_kind((0.58, 1), (0.4, 3), (0.5, 2))
    rounds = rounds_of(pool, measure, stop=lambda: len(measure.expected) >= most_measured)
    assert rounds.best(6) == best and len(measure.expected) == most_measured


def test_search_without_a_result_is_not_stopped() -> None:
    measure = Measure({"b": 80.0, "c": 30.0})
    rounds = rounds_of(one_kind((0.58, 1), (0.5, 2), (0.3, 3)), measure, stop=lambda: True)
    assert rounds.best(6) is None and list(measure.expected) == ["a", "b"] and rounds.results == {1: "B"}


def test_earlier_measurement_within_the_limit_survives_the_stop() -> None:
    """The candidate is measured again, since only its need was stored."""
    measure = Measure({"a": 80.0, "b": 50.0})
    rounds = rounds_of(one_kind((0.5, 1), (0.4, 2)), measure, stop=lambda: True, measured_needs={0: 80.0, 1: 50.0})
    rounds.results[0] = "A"
    assert rounds.best(6) == "B" and list(measure.expected) == ["b"]


def test_minimum_is_the_lowest_measured_need() -> None:
    pool = NamedPool([Prediction(0.5, 1, "x"), Prediction(0.52, 2, "y"), Prediction(0.9, 3, "z")])
    measure = Measure({"a": 58.0, "b": 45.0, "c": 1.0})
    assert rounds_of(pool, measure, limit=None).best(6) == "B"
    assert list(measure.expected) == ["a", "b"], "the forecast of c is far above the lowest need"


def test_minimum_remeasures_the_best_candidate_of_an_earlier_search() -> None:
    measure = Measure({"a": 58.0, "b": 45.0})
    rounds = rounds_of(one_kind((0.5, 1), (0.4, 2)), measure, limit=None, measured_needs={0: 58.0, 1: 45.0})
    assert rounds.most_measured(0) == 1
    assert rounds.best(0) == "B" and list(measure.expected) == ["b"]


def test_limit_of_zero_is_a_limit() -> None:
    """A budget in bytes may leave nothing for temporaries: such a search measures other kinds before it refuses."""
    measure = Measure(dict.fromkeys("abcdef", 90.0))
    rounds = rounds_of(NamedPool([Prediction(0.0, work, work) for work in range(6)]), measure, limit=0.0)
    assert rounds.most_measured(2) == 2 + MAX_EXTRA_CANDIDATES
    assert rounds.best(2) is None and len(measure.expected) == 2 + MAX_EXTRA_CANDIDATES
    assert rounds_of(one_kind((0.5, 1), (0.4, 2)), Measure({"a": 50.0, "b": 0.0}), limit=0.0).best(4) == "B"


def test_earlier_candidate_that_no_longer_applies_is_not_the_result() -> None:
    measure = Measure({"a": 58.0})
    rounds = rounds_of(one_kind((0.5, 1), (0.4, 2)), measure, limit=None, measured_needs={0: 58.0, 1: 45.0})
    assert rounds.best(0) == "A" and list(measure.expected) == ["b", "a"]


def test_stopped_search_with_a_result_remeasures_no_earlier_candidate() -> None:
    measure = Measure({"a": 55.0, "b": 50.0})
    rounds = rounds_of(one_kind((0.5, 2), (0.4, 1)), measure, stop=lambda: True, measured_needs={0: 55.0, 1: 50.0})
    rounds.results[0] = "A"
    assert rounds.best(6) == "A" and measure.expected == {}
