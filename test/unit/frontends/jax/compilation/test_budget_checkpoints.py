"""Budgets of steps with their own `jax.checkpoint`, whose copies the search may merge or keep."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation import budgeted as budgets
from recompute.frontends.jax.compilation.variants import Variant
from recompute.frontends.jax.lowering.lowered import Lowered
from recompute.frontends.jax.messages.call_site_warnings import NothingSaved
from recompute.test.unit.frontends.jax.five_layers import checkpointed_blocks, five_layers
from recompute.test.unit.frontends.jax.steps import far_apart, jax, temporaries

STEP = jax.value_and_grad(checkpointed_blocks)


@cache
def limited(budget: float | str) -> Any:
    """Return the step within a budget, which the tests share."""
    return recompute.jax.jit(STEP, budget=budget)


@pytest.mark.parametrize("budget", [0.5, "min"])
def test_budget_merges_checkpoint_copies_of_the_step(budget: float | str) -> None:
    """The search starts from the step without its `jax.checkpoint`, which left nothing to recompute."""
    arguments = five_layers()
    plain = jax.jit(STEP).lower(*arguments).compile()
    lowered = limited(budget).lower(*arguments)
    assert lowered.rewritten is not None and lowered.rewritten.proof
    assert not far_apart(limited(budget)(*arguments), plain(*arguments))
    if isinstance(budget, float):
        assert temporaries(lowered.compile()) <= budget * temporaries(plain)
        least = limited("min").lower(*arguments).rewritten
        assert least is not None and lowered.rewritten.extra_flops < least.extra_flops


def test_the_minimum_never_exceeds_the_own_checkpoint_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step with its own `jax.checkpoint` is a candidate for `min`, even if the search finds only larger ones or
    none."""
    arguments = five_layers()
    ordinary = recompute.jax.jit(STEP).lower(*arguments)
    if not ordinary.drops_barriers:
        pytest.skip("XLA keeps the barriers of the plain step, which is a candidate of its own")
    keeping = temporaries(ordinary.compile_plain(keeps_barriers=True))

    def refused(self: Any) -> Any:
        raise budgets.BudgetNotReached(self.request.module, "a reason", None)

    for budget, best in (("min", None), ("min", refused), (0.9, refused)):
        with monkeypatch.context() as patch:
            if best is not None:
                patch.setattr(budgets, "_CompilerSearch", type("Search", (budgets._CompilerSearch,), {"best": best}))  # pyright: ignore[reportPrivateUsage]
            jitted = limited(budget) if best is None else recompute.jax.jit(STEP, budget=budget)
            choice = jitted.lower(*arguments).compiled_step
            assert temporaries(choice.compiled) <= min(keeping, temporaries(ordinary.compiled_step.compiled))
            if best is not None:
                report = jitted.report(*arguments)
                assert choice.variant is report.variant is Variant.KEEPING and report.chosen.temporaries == keeping
                assert "its own jax.checkpoint already recomputes" in str(report)
                candidates = [str(compiled).partition(":")[0] for compiled in report.search.candidates]
                assert candidates == [budgets.OWN_CHECKPOINT]


def test_refusal_states_smallest_candidate_of_all_variants() -> None:
    """If no candidate fits, merged or not, the error states the smallest of both variants."""
    arguments = five_layers()
    with pytest.raises(budgets.BudgetNotReached) as refused:
        limited(0.01).lower(*arguments)
    least = limited("min").lower(*arguments)
    assert refused.value.least_bytes is not None
    assert refused.value.least_bytes <= 1.05 * temporaries(least.compile())


def test_step_that_keeps_its_own_copies_gives_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no warning if the step runs with its own barriers, which save memory and which `jax.jit` would drop."""
    monkeypatch.setattr(Lowered, "drops_barriers", True)
    step = recompute.jax.jit(jax.value_and_grad(checkpointed_blocks))
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingSaved)
        chosen = step.report(*five_layers()).variant
        step(*five_layers())
    assert chosen in (Variant.KEEPING, Variant.MERGED)
