"""The peaks of the pipeline equal the peaks of the timelines, and steps whose peaks do not fall are rejected."""

from __future__ import annotations

import pytest

from recompute.analysis.memory.peaks import Peaks
from recompute.analysis.memory.timeline import eager_timeline, timeline
from recompute.analysis.step.order import functions_of
from recompute.search.choice.vetoes import why_worse
from recompute.test.examples import SMALL, classified, inlined, peaks_before


@pytest.mark.parametrize("name", SMALL)
def test_peaks_equal_those_of_the_timelines(name: str) -> None:
    module = inlined(name)
    function, phases, peaks = functions_of(module)[0], classified(module), peaks_before(name)
    assert peaks.in_order == timeline(function, phases).peak_bytes
    assert peaks.eager == eager_timeline(function, phases).peak_bytes


def test_step_is_steady_within_a_tenth_of_program_order() -> None:
    assert peaks(100, 110, 0).is_steady and not peaks(100, 111, 0).is_steady


def peaks(in_order: int, eager: int, xla: int) -> Peaks:
    return Peaks.known(in_order, eager, lambda: xla)


@pytest.mark.parametrize(
    ("after", "keeps_barriers", "reason"),
    [
        (peaks(900, 1000, 1000), True, None),
        (peaks(900, 1009, 1000), True, None),
        (peaks(1000, 1000, 900), True, None),
        (peaks(1009, 900, 1000), True, None),
        (
            peaks(900, 1100, 500),
            True,
            "an executor that starts operations as soon as it can from 1000 bytes to 1.1 KiB (1100 bytes)",
        ),
        (peaks(900, 1100, 500), False, None),
        (peaks(1100, 900, 500), True, "the peak from 1000 bytes to 1.1 KiB (1100 bytes)"),
        (
            peaks(995, 995, 995),
            True,
            "from 1000 bytes to 995 bytes, and from 1000 bytes to 995 bytes under XLA:CPU: less than 1 % saved",
        ),
        (peaks(1000, 900, 500), False, "the peak from 1000 bytes to 1000 bytes: less than 1 % saved"),
    ],
)
def test_step_changes_only_if_a_peak_falls_and_none_rises(
    after: Peaks, keeps_barriers: bool, reason: str | None
) -> None:
    result = why_worse(peaks(1000, 1000, 1000), after, keeps_barriers)
    assert result is None if reason is None else result is not None and result.endswith(reason)
