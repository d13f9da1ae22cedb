"""Budgets for a few random steps; `python -m recompute.test.property.budgets` runs any number."""

from __future__ import annotations

from collections import Counter

import pytest

from .budgets import check, has_twins, problem_for, request_for, step_for

PARTS = 3
SEEDS = (*range(12), 163, 183, 190, 274, 683)
"""163: a minimum that copies in the forward pass would beat; 683: twins, merged below the minimum;
the others: dead code, taken for what no plan changes."""


@pytest.mark.slow("0", "2")
@pytest.mark.parametrize("part", range(PARTS))
def test_budgets_are_kept_or_refused_with_reason(part: int) -> None:
    kinds, problems = Counter[str](), list[str]()
    for seed in SEEDS[part::PARTS]:
        answers, result = check(seed)
        kinds.update(answer.kind for answer in answers)
        problems += [f"seed {seed}: {words}" for words in result]
    assert problems == []
    assert kinds["kept by copies"] >= 4 and kinds["refused: proved"] >= 2, kinds


def test_some_steps_allow_exhaustive_search() -> None:
    small = [seed for seed in SEEDS if seed % 3 == 1 and problem_for(step_for(seed), request_for(seed)) is not None]
    assert len(small) >= 3


def test_some_steps_have_twins() -> None:
    assert {has_twins(step_for(seed)) for seed in SEEDS} == {True, False}
