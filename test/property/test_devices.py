"""A few random per-device bodies; `python -m recompute.test.property.devices` runs any number."""

from __future__ import annotations

from collections import Counter

from recompute.test.property.devices import check

PAIRS = 400


def test_proved_pairs_agree_on_devices() -> None:
    verdicts = Counter(check(seed) for seed in range(PAIRS))
    assert verdicts["other"] == 0
    assert verdicts["same"] > PAIRS // 20 and verdicts["rejected"] > PAIRS // 50
