"""The records of compiled candidates, and the message of a refused budget that lists them."""

from __future__ import annotations

import pytest

from recompute.search.budget.compiled_candidate import WITHOUT_BUDGET, CompiledCandidate
from recompute.search.budget.refusal_text import budget_verdict, refusal_text


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (
            CompiledCandidate("named segments", 4096, 5120, 12345, False),
            "named segments: 4.0 KiB predicted, 5.0 KiB by the compiler, above the budget; 1.23e+04 FLOPs more",
        ),
        (
            CompiledCandidate(WITHOUT_BUDGET, None, 5120, 7, True),
            "as without a budget: 5.0 KiB by the compiler, within the budget; 7 FLOPs more",
        ),
        (
            CompiledCandidate("named segments", 4096, 0, 7, None),
            "named segments: 4.0 KiB predicted, 0 B by the compiler; 7 FLOPs more",
        ),
        (CompiledCandidate("named segments", 4096, None, 0, None), "named segments: cannot be applied"),
    ],
)
def test_candidate_is_described_with_its_sizes(candidate: CompiledCandidate, text: str) -> None:
    assert str(candidate) == text


@pytest.mark.parametrize(("fits", "verdict"), [(True, "within"), (False, "above"), (None, "")])
def test_verdict_names_the_budget_unless_it_is_the_minimum(fits: bool | None, verdict: str) -> None:
    assert budget_verdict(fits) == (f", {verdict} the budget" if verdict else "")


def test_refusal_lists_the_candidates_after_the_smallest_need() -> None:
    text = refusal_text("no plan", "1 of 2", "the smallest needs 3", [1, "two"], "\n  ")
    assert text == "no plan, 1 of 2: the smallest needs 3\n  1\n  two"
    assert refusal_text("no plan", "1 of 2", "nothing", [], "\n  ") == "no plan, 1 of 2: nothing"
