"""A few almost correctly rewritten loops; `python -m recompute.test.property.rewritten_loops` runs any number."""

from __future__ import annotations

from collections import Counter

import pytest

from recompute.test.property.rewritten_loops import WRONG, check, check_passes

pytestmark = pytest.mark.slow

PAIRS = 200


def test_proved_pairs_compute_same_results() -> None:
    verdicts = Counter(check(seed) for seed in range(PAIRS))
    assert not any(verdicts[verdict] for verdict in WRONG)
    assert verdicts["rejected"] > PAIRS // 3 and verdicts["same"] > PAIRS // 10


@pytest.mark.slow
def test_pass_output_is_proved_and_keeps_results() -> None:
    verdicts = Counter(check_passes(seed) for seed in range(PAIRS))
    assert not any(verdicts[verdict] for verdict in WRONG)
    assert verdicts["same"] > PAIRS // 20
