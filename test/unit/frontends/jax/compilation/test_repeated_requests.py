"""The work of budget searches, in compilations and solver calls: a repeated request needs none."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation import budgeted
from recompute.frontends.jax.lowering import explain_traced, step_tracer
from recompute.planning.solvers import solve_graph
from recompute.search.candidate_plans.pool_cache import forget_pools
from recompute.search.candidate_plans.solver_plans import BUDGET_SHARES
from recompute.test.unit.frontends.jax.steps import batch, jax, mlp, weights

STEP = mlp().step


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the expensive functions that have been called, in order."""
    names = list[str]()

    def count(holder: Any, name: str) -> None:
        original = getattr(holder, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            names.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(holder, name, counted)

    count(jax.stages.Lowered, "compile")
    count(solve_graph, "plan_within")
    count(budgeted, "rewrite")
    count(step_tracer, "lower_and_rewrite")
    count(explain_traced, "explain_verified")
    return names


REQUESTS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "call": ("min", lambda step: step(weights(), batch())),
    "report": (0.6, lambda step: step.report(weights(), batch())),
    "explain": (None, lambda step: step.explain(weights(), batch())),
    "report on another budget": (None, lambda step: recompute.jax.explain(step, weights(), batch(), budget=0.6)),
    "report on the own budget": (0.6, lambda step: recompute.jax.explain(step, weights(), batch(), budget=0.6)),
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_repeated_request_needs_no_work(request_name: str, work: list[str]) -> None:
    budget, request = REQUESTS[request_name]
    step = recompute.jax.jit(STEP, budget=budget)
    first = request(step)
    assert work
    work.clear()
    again = request(step)
    assert work == []
    assert request_name == "call" or str(again) == str(first)


def test_report_on_a_budget_and_the_call_share_a_search(work: list[str]) -> None:
    step = recompute.jax.jit(STEP, budget="60%")
    recompute.jax.explain(step, weights(), batch(), budget="60%")
    work.clear()
    step(weights(), batch())
    assert work == []


def test_clearing_the_cache_repeats_the_search(work: list[str]) -> None:
    step = recompute.jax.jit(STEP)
    recompute.jax.explain(step, weights(), batch(), budget=0.6)
    step.explain(weights(), batch())
    work.clear()
    step.clear_cache()
    recompute.jax.explain(step, weights(), batch(), budget=0.6)
    assert "lower_and_rewrite" in work
    step.explain(weights(), batch())
    assert "explain_verified" in work


def test_nnx_report_is_not_repeated(work: list[str]) -> None:
    pytest.importorskip("flax.nnx")
    from recompute.test.unit.frontends.jax.nnx_models import Dense, chain_of, nnx, optax, train_step

    training = chain_of(Dense, 2, 16, 128, 16)
    model = training.build(False)
    arguments = model, nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param), training.inputs()
    step = recompute.nnx.jit(train_step)
    first = recompute.nnx.explain(step, *arguments, budget="60%")
    assert work
    work.clear()
    assert str(recompute.nnx.explain(step, *arguments, budget="60%")) == str(first)
    assert work == []


def test_minimum_of_a_small_step_takes_few_compilations_and_solver_calls(work: list[str]) -> None:
    """The plain step and its candidates are compiled once each, and a binary search selects the budgets to solve."""
    forget_pools()
    report = recompute.jax.jit(STEP, budget="min").report(weights(), batch())
    # The first candidate is compiled to run; if another one is the smallest, it is compiled once more.
    assert work.count("compile") <= len(report.search.candidates) + 2
    assert work.count("rewrite") <= len(report.search.candidates) + 1
    assert work.count("plan_within") <= ceil(log2(len(BUDGET_SHARES))) + 1
