"""The peaks of the pipeline equal the peaks of the timelines."""

from __future__ import annotations

import pytest

from recompute.analysis.forecasts.peaks import Peaks
from recompute.analysis.memory.timeline import eager_timeline, timeline
from recompute.analysis.step.order import functions_of
from recompute.test.examples import SMALL, classified, inlined, peaks_before


@pytest.mark.parametrize("name", SMALL)
def test_peaks_equal_those_of_the_timelines(name: str) -> None:
    module = inlined(name)
    function, phases, peaks = functions_of(module)[0], classified(module), peaks_before(name)
    assert peaks.in_order == timeline(function, phases).peak_bytes
    assert peaks.eager == eager_timeline(function, phases).peak_bytes


def test_step_is_steady_within_a_tenth_of_program_order() -> None:
    steady, unsteady = (Peaks.from_values(100, eager, lambda: 0) for eager in (110, 111))
    assert steady.is_steady and not unsteady.is_steady
