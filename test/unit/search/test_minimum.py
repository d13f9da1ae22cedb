"""The budget `min` needs no more than the choice without a budget, whatever the solvers and the pool offer."""

from __future__ import annotations

import pytest

import recompute
from recompute.options.memory_model import MODELS
from recompute.planning.plan import plan_nothing
from recompute.search.budget import program_order
from recompute.search.budget.rounds import Rounds
from recompute.search.outcome import RewriteResult
from recompute.test.examples import original


def worst_of_pool(self: Rounds[object, RewriteResult], _: int) -> RewriteResult | None:
    """Return the candidate with the highest need that the search could have chosen."""
    results = [self.measure(candidate, 0.0) for candidate in self.pool.candidates]
    return max((result for result in results if result is not None), key=lambda result: result[0])[1]


@pytest.mark.parametrize("model", MODELS)
def test_the_minimum_needs_no_more_than_the_choice_without_a_budget(model: str, monkeypatch: pytest.MonkeyPatch):
    def saves_nothing(self: program_order._SolverRounds) -> RewriteResult:  # pyright: ignore[reportPrivateUsage]
        return self.problem.evaluate(plan_nothing, self.loops)

    step = original("mlp.small.mlir")
    monkeypatch.setattr(program_order._SolverRounds, "best", saves_nothing)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(Rounds, "best", worst_of_pool)
    peaks = list[int]()
    for options in (recompute.RecomputeOptions(), recompute.RecomputeOptions(budget="min", memory_model=model)):
        rewritten = recompute.rewrite(step, options)
        ((before, after),) = rewritten.memory(model).values()
        peaks.append(after.peak_bytes)
        assert after.peak_bytes < before.peak_bytes
    assert peaks[1] <= peaks[0]
