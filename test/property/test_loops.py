"""A few edited loops; `python -m recompute.test.property.loops` runs any number."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("jax")

from recompute.interpreters.execute_check import compare
from recompute.proof.prove import prove
from recompute.test.property import scans
from recompute.test.property.loops import check, inputs_of, programs

pytestmark = pytest.mark.slow

EDITS = 120


def test_cut_loops_are_proved_and_compute_the_same() -> None:
    for name, (before, after) in programs().items():
        proof = prove(before, after)
        assert proof and proof.tier == 2, (name, proof.reason)
        assert compare(before, after, inputs_of(before, 0)).equal, name


@pytest.mark.slow
def test_accepted_edits_keep_results() -> None:
    verdicts = Counter(check(seed) for seed in range(EDITS))
    assert verdicts["other"] == 0
    assert verdicts["rejected"] > EDITS // 3 and verdicts["same"]


@pytest.mark.slow
def test_random_steps_with_loops_are_proved_and_equal() -> None:
    """Random steps are proved and equal, including 7344 and 7695, where the newest gradient value is the unused counter
    of a loop."""
    verdicts = {seed: scans.check(seed) for seed in (*range(8), 7344, 7695)}
    assert set(verdicts.values()) == set(scans.RIGHT), verdicts
