"""The peaks that the pipeline goes by are those of the timelines, and a step is taken only where one of them falls."""

from __future__ import annotations

import pytest

from recompute.analysis.memory.eager import eager_timeline
from recompute.analysis.memory.peaks import Peaks, why_worse
from recompute.analysis.memory.timeline import timeline
from recompute.analysis.step.functions import functions_of
from recompute.dialects.parser import parse_module
from recompute.test.examples import SMALL, classified, inlined, peaks_before


@pytest.mark.parametrize("name", SMALL)
def test_the_peaks_are_those_of_the_timelines(name: str) -> None:
    module = inlined(name)
    function, phases, peaks = functions_of(module)[0], classified(module), peaks_before(name)
    assert peaks.in_order == timeline(function, phases).peak_bytes
    assert peaks.eager == eager_timeline(function, phases).peak_bytes


def test_a_step_without_temporaries_needs_nothing() -> None:
    text = "func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {\n  func.return %x : tensor<8xf32>\n}"
    found = Peaks.of(parse_module(text))
    assert (found.in_order, found.eager, found.xla) == (0, 0, 0)


def test_steady_is_within_a_tenth_of_program_order() -> None:
    assert peaks(100, 110, 0).is_steady and not peaks(100, 111, 0).is_steady


def peaks(in_order: int, eager: int, xla: int) -> Peaks:
    found = Peaks(lambda: inlined("chain.small.mlir"), in_order, eager)
    found.__dict__["xla"] = xla
    return found


@pytest.mark.parametrize(
    ("after", "ordered", "reason"),
    [
        (peaks(90, 100, 200), True, None),
        (peaks(90, 110, 50), True, "starts operations as soon as it can from 100 to 110 bytes"),
        (peaks(90, 110, 50), False, None),
        (peaks(110, 90, 50), True, "the peak from 100 to 110 bytes"),
        (peaks(100, 90, 99), True, None),
        (peaks(100, 90, 100), True, "leaves the peak at 100 bytes, and at 100 under XLA:CPU"),
        (peaks(100, 90, 50), False, "the peak from 100 to 100 bytes"),
    ],
)
def test_a_step_is_left_alone_unless_a_peak_falls_and_none_of_the_executors_rises(
    after: Peaks, ordered: bool, reason: str | None
) -> None:
    found = why_worse(peaks(100, 100, 100), after, ordered)
    assert found is None if reason is None else found is not None and found.endswith(reason)
