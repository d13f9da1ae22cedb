"""The benchmark of falling budgets reads refusals, detects faults, and finds none in one program."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the programs are of PyTorch")

from recompute.benchmarks.torch import falling_budgets  # noqa: E402
from recompute.benchmarks.torch.falling_budgets import FallingStep, faults_of, plain, rises  # noqa: E402
from recompute.benchmarks.torch.refusals import lowest_stated_peak  # noqa: E402

COMPILED = "no step: the smallest of 4 compiled steps needs 2.0 KiB (2048 bytes)"


@pytest.mark.parametrize(
    ("refusal", "least"),
    [
        ("no plan; the lowest peak of any plan is 243.0 KiB (248880 bytes) in addition to weights and inputs", 248880),
        ("no plan; the lowest peak of any plan is 912 bytes in addition to weights and inputs", 912),
        (f"{COMPILED}; a step compiled for another budget needs 1.0 KiB (1025 bytes); plan: 600 bytes", 1025),
        (f"{COMPILED}; plan: 600 bytes in program order, 2.0 KiB (2048 bytes) as compiled", 2048),
        ("no step: no other step is left to compile", 0),
    ],
)
def test_least_peak_is_read_from_a_refusal(refusal: str, least: int):
    assert lowest_stated_peak(refusal) == least


def test_rising_peaks_and_wrong_results_are_faults():
    steps = [
        FallingStep(0.9, 800),
        FallingStep(0.8, 865),
        FallingStep(0.7, 600, difference=0.1),
        FallingStep(0.6, 0, is_refused=True),
    ]
    assert rises(steps) == [(steps[0], steps[1])]
    assert rises([FallingStep(0.9, 800), FallingStep(0.8, 800)]) == []
    assert list(faults_of(steps, 1000, 0.0)) == [
        "budget 0.8: 865 bytes exceed the 800 allowed",
        "budget 0.7: a result differs by 1.0e-01",
        "budget 0.6: the refusal reports no peak",
        "budget 0.8: 865 bytes, but only 800 at the larger budget 0.9",
    ]
    faults = faults_of([FallingStep(0.5, 500, state_is_equal=False)], 1000, 0.0)
    assert list(faults) == ["budget 0.5: the final random state differs"]


def test_falling_budgets_of_one_program_have_no_fault(monkeypatch: pytest.MonkeyPatch):
    """PyTorch's issue 190717 in program order: results are equal within each kept budget, and refusals state the least
    peak."""
    monkeypatch.setattr(falling_budgets, "SHARES", (0.7, 0.5, 0.4))
    reference, plain_bytes = plain("pytorch 190717", "aot_eager")
    steps = list(falling_budgets.steps_of("pytorch 190717", "aot_eager", reference))
    assert [step.is_refused for step in steps] == [False, False, True]
    assert list(faults_of(steps, plain_bytes, 0.0)) == []
    assert 0.4 * plain_bytes < steps[-1].peak_bytes < 0.5 * plain_bytes
