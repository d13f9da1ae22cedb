"""A plan that somebody wrote by hand, and wrongly: no traceback, and no wrong gradient.

More of them: `python -m recompute.test.property.plans`.
"""

from __future__ import annotations

from collections import Counter

import pytest

from recompute.test.property.plans import outcome


@pytest.mark.slow
def test_damaged_plans_are_refused_or_proved() -> None:
    found = Counter(outcome("mlp.small.mlir", seed) for seed in range(14))
    assert min(found[one] for one in ("no plan", "refused", "proved")) > 1
