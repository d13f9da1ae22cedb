"""The choice of the next plan to measure: the least work that should fit, after correction by the measurements."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from recompute.planning.calibrated_search import CalibratedSearch, Prediction, Ratio


def test_candidate_with_the_least_work_that_fits_is_chosen() -> None:
    choices = [Prediction(0.8, 1.0, "a"), Prediction(0.5, 2.0, "a"), Prediction(0.2, 3.0, "a")]
    measured = [85.0, 55.0, 25.0]
    assert CalibratedSearch(choices, 60.0, (1.0, 100.0)).run(measured.__getitem__, 4) == 1


def test_minimum_is_of_measured_not_predicted_bytes() -> None:
    """The minimum is one of measured bytes: other kinds are tried while they may need fewer than the preferred kind."""
    choices = [Prediction(0.5, 1.0, "a"), Prediction(0.54, 2.0, "b"), Prediction(0.9, 1.0, "c")]
    measured = [78.0, 70.0, 0.0]
    search = CalibratedSearch(choices, None, (1.0, 100.0))
    assert search.run(measured.__getitem__, 4) is None, "no number of bytes is asked for"
    assert search.measured == {0: 78.0, 1: 70.0} and search.least == 1


@pytest.mark.parametrize(
    ("measured", "tried"),
    [([50.0, 52.0, 52.0, 0.0], 3), ([50.0, 52.0, 40.0, 50.0, 50.0, 0.0], 4), ([50.0, 60.0, 0.0], 2)],
    ids=["two tries without an improvement", "a failure between improvements", "far above the lowest need"],
)
def test_minimum_search_ends_without_promising_candidates(measured: list[float], tried: int) -> None:
    choices = [Prediction(0.5 + 0.01 * index, 1.0 + index, str(index)) for index in range(len(measured))]
    search = CalibratedSearch(choices, None, (1.0, 100.0))
    search.run(measured.__getitem__, 6)
    assert list(search.measured) == list(range(tried)) and search.least == measured.index(min(measured[:tried]))


def test_nearly_equal_work_prefers_more_free_memory() -> None:
    choices = [Prediction(0.59, 1.0, "a"), Prediction(0.5, 1.02, "a"), Prediction(0.4, 1.2, "a")]
    search = CalibratedSearch(choices, 60.0, (1.0, 100.0))
    assert search.run([59.0, 50.0, 40.0].__getitem__, 4) == 1 and list(search.measured) == [1]


def test_candidates_are_added_before_each_try() -> None:
    choices, ratios = [Prediction(0.9, 1.0, "a")], list[float]()

    def add_candidate(ratio: Ratio) -> Sequence[Prediction]:
        ratios.append(ratio(Prediction(0.6, 2.0, "a")))
        choices.append(Prediction(0.6 - 0.1 * len(ratios), 2.0 + len(ratios), "a"))
        return choices

    search = CalibratedSearch(choices, 60.0, (1.0, 100.0))
    assert search.run(lambda index: 130.0 * choices[index].need, 4, add_candidate) == 2
    assert ratios[0] == pytest.approx(1.0) and ratios[1] == pytest.approx(1.2)


def test_of_equal_sizes_the_least_work_is_chosen() -> None:
    search = CalibratedSearch([Prediction(0.5, 2.0, "a"), Prediction(0.5, 1.0, "b")], None, (1.0, 100.0))
    search.run(lambda _: 50.0, 4)
    assert search.least == 1 and CalibratedSearch([], None, (1.0, 1.0)).least is None


def test_prediction_error_is_corrected_per_kind() -> None:
    """Predictions are corrected per kind: an error of one kind does not count against another."""
    choices = [
        Prediction(0.27, 1.0, "a"),
        Prediction(0.25, 2.0, "a"),
        Prediction(0.28, 3.0, "b"),
        Prediction(0.26, 4.0, "a"),
    ]
    measured = [33.0, 33.0, 29.0, 33.0]
    search = CalibratedSearch(choices, 30.0, (1.0, 100.0))
    assert search.run(measured.__getitem__, 4) == 2 and list(search.measured) == [0, 2]


def test_untried_kind_with_less_work_is_still_tried() -> None:
    """An untested kind with less work is tried, although a plan of another kind with more work already fits."""
    choices = [Prediction(0.4, 1.0, "a"), Prediction(0.3, 3.0, "a"), Prediction(0.45, 2.0, "b")]
    measured = [60.0, 40.0, 46.0]
    search = CalibratedSearch(choices, 50.0, (1.0, 100.0))
    assert search.run(measured.__getitem__, 4) == 2 and list(search.measured) == [0, 1, 2]


def test_equal_predictions_over_budget_prefer_more_work() -> None:
    choices = [Prediction(0.5, 1.0, "a"), Prediction(0.5, 2.0, "a")]
    measured = [50.0, 38.0]
    assert CalibratedSearch(choices, 40.0, (1.0, 100.0)).run(measured.__getitem__, 1) == 1


def test_limit_of_zero_is_a_limit() -> None:
    """Only a plan without temporaries is within the limit 0: it is not the search for the lowest need."""
    choices = [Prediction(0.5, 1.0, "a"), Prediction(0.4, 2.0, "b")]
    search = CalibratedSearch(choices, 0.0, (1.0, 100.0))
    assert search.run([50.0, 0.0].__getitem__, 4) == 1 and search.best == 1
    assert CalibratedSearch(choices, None, (1.0, 100.0), {0: 50.0, 1: 0.0}).best is None


@pytest.mark.parametrize("limit", [0.0, None])
def test_ratio_to_no_bytes_is_infinite(limit: float | None) -> None:
    choices, ratios = [Prediction(0.5, 1.0, "a")], list[float]()

    def record_ratio(ratio: Ratio) -> Sequence[Prediction]:
        ratios.append(ratio(choices[0]))
        return choices

    CalibratedSearch(choices, limit, (1.0, 100.0)).run(lambda _: 50.0, 1, record_ratio)
    assert ratios == [float("inf")]


def test_candidate_that_cannot_be_measured_is_never_the_least() -> None:
    search = CalibratedSearch([Prediction(0.5, 1.0, "a"), Prediction(0.4, 2.0, "b")], None, (1.0, 100.0))
    search.record(0, None)
    assert search.least is None and search.measured == {0: float("inf")}
    search.record(1, 60.0)
    assert search.least == 1
