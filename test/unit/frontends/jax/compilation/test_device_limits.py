"""Budgets of the device, and bytes of arguments and results that no plan changes."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.frontends.jax.bridge.crossing import module_of
from recompute.frontends.jax.compilation import device_limits
from recompute.frontends.jax.compilation.allocation import fixed_bytes
from recompute.frontends.jax.keywords import budget_option
from recompute.frontends.jax.lowering import rewrite_within
from recompute.support.diagnostics import Refusal
from recompute.test.unit.frontends.jax.five_layers import STEP, five_layers
from recompute.test.unit.frontends.jax.steps import jax, temporaries


@pytest.mark.slow
def test_device_budget_requires_memory_stats(monkeypatch: pytest.MonkeyPatch, plain: Any) -> None:
    step = recompute.jax.jit(STEP, budget="device")
    if not jax.local_devices()[0].memory_stats():
        with pytest.raises(Refusal, match='budget="device": cpu does not report its memory: give bytes or a share'):
            step(*five_layers())
    analysis = plain.memory_analysis()
    around = analysis.argument_size_in_bytes + analysis.output_size_in_bytes
    monkeypatch.setattr(device_limits, "free_bytes", lambda _: around + temporaries(plain) * 6 // 10)
    assert temporaries(step.lower(*five_layers()).compile()) <= 0.6 * temporaries(plain)


def test_device_budget_is_refused_before_anything_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_option, "reported_free_bytes", lambda: None)
    monkeypatch.setattr(device_limits, "reported_free_bytes", lambda: None)
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda *_: pytest.fail("something is compiled"))
    with pytest.raises(Refusal, match=r'budget="device": .* does not report its memory: give bytes or a share'):
        recompute.jax.jit(STEP, budget="device")(*five_layers())
    with pytest.raises(ValueError, match=r"or 'min'$"):
        recompute.jax.jit(STEP, budget="8 apples")
    monkeypatch.setattr(budget_option, "reported_free_bytes", lambda: 2**30)
    with pytest.raises(ValueError, match=r'; budget="device" is the free memory of the device$'):
        recompute.jax.jit(STEP, budget="8 apples")


@pytest.mark.parametrize("budget", ("1KiB", "100B"))
def test_budget_below_arguments_and_results_is_refused_before_anything_is_compiled(
    budget: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("the step is rewritten or compiled")

    monkeypatch.setattr(rewrite_within, "compile_within", fail)
    for call in (
        lambda: recompute.jax.jit(STEP, budget=budget).lower(*five_layers()),
        lambda: recompute.jax.jit(STEP, budget=budget)(*five_layers()),
        lambda: recompute.jax.jit(STEP, budget=budget).report(*five_layers()),
    ):
        with pytest.raises(
            Refusal,
            match=r"arguments and results, which no plan changes, need \d+\.\d KiB \(\d+ bytes\); "
            r'budget="min" finds the smallest budget that a plan can meet',
        ):
            call()


@pytest.mark.parametrize("donated", (None, 0))
def test_bytes_that_are_known_before_compilation_are_a_lower_bound(donated: int | None) -> None:
    lowered = jax.jit(STEP, donate_argnums=donated).lower(*five_layers())
    known = device_limits.least_fixed_bytes(module_of(lowered, "step"))
    measured = fixed_bytes(lowered.compile())
    assert known <= measured < 1.05 * known
