"""Invalid hand-written plans: neither a traceback nor a wrong gradient.

`python -m recompute.test.property.plans` runs more of them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from recompute.test.property.plans import outcome


@pytest.mark.slow
def test_damaged_plans_are_refused_or_proved() -> None:
    result = Counter(outcome("mlp.small.mlir", seed) for seed in range(14))
    assert min(result[item] for item in ("no plan", "refused", "proved")) > 1
