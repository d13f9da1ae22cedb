"""`recompute.jax.explain` with a budget: the plan that a call within this budget would run."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re

import pytest

import recompute
from recompute.frontends.jax.compilation.variants import Variant
from recompute.search.candidate_plans.pool_cache import forget_pools
from recompute.test.unit.frontends.jax.five_layers import STEP, five_layers
from recompute.test.unit.frontends.jax.steps import temporaries


@pytest.mark.parametrize("share", [0.6, "60%"])
def test_explain_finds_plan_within_budget(share: float | str) -> None:
    within = recompute.jax.jit(STEP, budget=share).report(*five_layers())
    explained = recompute.jax.explain(STEP, *five_layers(), budget=share)
    assert explained.search.limit_bytes is not None and explained.chosen.device_bytes is not None
    assert explained.chosen.device_bytes <= explained.search.limit_bytes < (explained.plain.device_bytes or 0)
    assert within.chosen.temporaries is not None and not explained.search.refused
    assert explained.fit is not None and explained.fit.fits and str(explained).startswith("fits: needs ")


@pytest.mark.parametrize("budget", ["8GiB", 0.9])
def test_explain_and_a_call_within_a_budget_are_about_the_same_step(budget: float | str) -> None:
    """The call and the report use the same step: the plain one if it fits, otherwise the rewritten one."""
    forget_pools()
    explained = recompute.jax.explain(STEP, *five_layers(), budget=budget)
    forget_pools()
    called = recompute.jax.jit(STEP, budget=budget)
    choice = called.lower(*five_layers()).compiled_step
    assert explained.variant is choice.variant is (Variant.PLAIN if budget == "8GiB" else Variant.RECOMPUTED)
    assert explained.chosen.temporaries == temporaries(choice.compiled)
    assert explained.chosen == called.report(*five_layers()).chosen
    if budget == "8GiB":
        text = str(explained)
        assert re.match(r"fits: the plain step needs \S+ \S+ of 8\.0 GiB on the device\n", text)
        assert 'next: a smaller budget, or "min", reduces memory' in text


def test_explain_reports_that_no_plan_fits() -> None:
    explained = recompute.jax.explain(STEP, *five_layers(), budget="1%")
    text = str(explained)
    assert "why: no plan is within the budget 1%" in text
    assert "the smallest compiled candidate needs" in " ".join(text.split())
    assert "by the compiler" not in text and "no plan is within the budget 1%" in explained.search.refused
    assert "fits in 1%" in text and explained.fit is not None and explained.fit.fits is False
    needed = r"does not fit: the smallest step found needs \S+ \S+, above the budget of \S+ \S+ on the device\n"
    assert re.match(needed, text)
    small = recompute.jax.explain(STEP, *five_layers(), budget="1KiB")
    assert "arguments and results" in small.search.refused
    assert str(small).startswith("does not fit: arguments and results alone need ")
    with pytest.raises(TypeError, match=r"recompute\.jax\.explain: budget must be a str"):
        recompute.jax.explain(STEP, *five_layers(), budget=True)


def test_explain_supports_the_min_budget() -> None:
    explained = recompute.jax.explain(STEP, *five_layers(), budget="min")
    assert explained.search.candidates and explained.chosen.temporaries is not None and "fits in" not in str(explained)
    assert explained.fit is not None and explained.fit.fits is None
    smallest = r"unknown: the smallest step found needs \S+ \S+ on the device, and the device reports no memory limit;"
    assert re.match(smallest, explained.fit.text) and str(explained).startswith("unknown: ")


@pytest.mark.parametrize(("limit", "fits"), [(1 << 30, True), (1, False)])
def test_explain_compares_the_smallest_step_with_the_device(
    limit: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recompute.frontends.jax.reports.compare_step.reported_total_bytes", lambda: limit)
    explained = recompute.jax.explain(STEP, *five_layers(), budget="min")
    assert explained.fit is not None and explained.fit.fits is fits
    assert str(explained).startswith("fits: " if fits else "does not fit: ")
    assert "fits in min" not in str(explained)
