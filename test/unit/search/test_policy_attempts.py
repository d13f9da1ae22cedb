"""Candidates of budgets include the policies of `jax.checkpoint`, and mixtures of them with other attempts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from recompute.driver.api import rewrite
from recompute.mlir_io.parser import parse_module
from recompute.options.recompute_options import DEFAULT_OPTIONS, RecomputeOptions
from recompute.options.selection import Selection
from recompute.search.candidate_plans import solver_plans
from recompute.search.candidate_plans.pool import ModuleCandidate, Pool

BRANCHES = (Path(__file__).resolve().parents[3] / "examples" / "stablehlo" / "branches.small.mlir").read_text()
POLICY = "dots_saveable"


@pytest.fixture(autouse=True)
def no_solver_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the plans of the solvers, which take minutes in plain Python and do not depend on policies."""
    monkeypatch.setattr(solver_plans, "BUDGET_SHARES", ())


@cache
def candidates(share: float, policy: str = "") -> list[ModuleCandidate]:
    options = RecomputeOptions(selection=Selection(policy=policy)) if policy else DEFAULT_OPTIONS
    pool = Pool.of(parse_module(BRANCHES, "branches"), options)
    pool.search(lambda prediction: prediction.need / share)
    return pool.candidates


def least_work(share: float, policy: str = "") -> float:
    fitting = [entry.prediction for entry in candidates(share, policy) if entry.prediction.need <= share]
    return min(prediction.work for prediction in fitting)


def test_budget_needs_at_most_the_work_of_a_policy() -> None:
    """A budget needs no more work than a policy that meets it, since policies are among the candidates."""
    assert least_work(0.7) <= least_work(0.7, POLICY)
    unmixed = [entry for entry in candidates(0.7) if POLICY not in entry.words and "dots" not in entry.words]
    assert least_work(0.7) < min(entry.prediction.work for entry in unmixed if entry.prediction.need <= 0.7)


def test_user_policy_excludes_other_policies() -> None:
    assert not any("inside" in entry.words for entry in candidates(0.7, POLICY))


@pytest.mark.parametrize("words", ["inside", "the others with"])
def test_candidates_with_policies_are_proved_equal(words: str) -> None:
    """Candidates with policies, applied to the operations that they name by number, are proved equal."""
    of_kind = [entry for entry in candidates(0.3) if words in entry.words]
    assert of_kind
    for entry in of_kind[:: max(1, len(of_kind) // 3)]:
        (step,) = entry.plans
        result = rewrite(BRANCHES, RecomputeOptions(planner=lambda _, plan=step.plan: plan))
        assert result.proof is not None and result.proof.proved and result.copies == step.plan.copies
