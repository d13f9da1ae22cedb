"""Recomputation can be disabled and limited in time, and remarks are located in the user's code."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation import budgeted as budgets
from recompute.frontends.jax.compilation.variants import Variant
from recompute.test.unit.frontends.jax.steps import batch, jax, mlp, temporaries, weights


def test_plain_step_runs_inside_disabled():
    step = recompute.jax.jit(mlp().step)
    step(weights(), batch())
    with recompute.jax.disabled():
        plain, lowered = step(weights(), batch()), step.lower(weights(), batch())
        report = step.report(weights(), batch())
    expected = jax.jit(mlp().step)(weights(), batch())
    assert all((a == b).all() for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(expected), strict=True))
    assert (
        lowered.optimized is lowered.plain and report.variant is Variant.PLAIN and "switched off" in (report.why or "")
    )
    assert step.report(weights(), batch()).variant is Variant.RECOMPUTED


@pytest.mark.parametrize("value", ["off", "OFF", "0", "false"])
def test_environment_variable_disables_recomputation(value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECOMPUTE", value)
    step = recompute.jax.jit(mlp().step)
    step(weights(), batch())
    plain = "calls under RECOMPUTE=off or recompute.jax.disabled() ran the plain step"
    assert repr(step) == f"<recompute.jax.jit(step), lowered for no calls; {plain}>"
    step.clear_cache()
    assert repr(step) == "<recompute.jax.jit(step), lowered for no calls>"


def test_unknown_environment_value_is_rejected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECOMPUTE", "of")
    with pytest.raises(ValueError, match="RECOMPUTE=of: expected 'off' or 'on'"):
        recompute.jax.jit(mlp().step)(weights(), batch())


def test_time_limit_returns_the_best_step_so_far():
    plain = temporaries(jax.jit(mlp().step).lower(weights(), batch()).compile())
    report = recompute.jax.jit(mlp().step, budget="min", time_limit=1e-6).report(weights(), batch())
    assert (
        len(report.search.candidates) == 1
        and report.chosen.temporaries is not None
        and report.chosen.temporaries < plain
    )


def test_interrupt_returns_the_best_step_so_far(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    measured, sizes = budgets.reported_bytes, list[int]()

    def interrupted(module: Any, compiled: Any, option: str) -> int:
        sizes.append(measured(module, compiled, option))
        if len(sizes) == 2:  # The plain step, and the first candidate.
            os.kill(os.getpid(), signal.SIGINT)
        return sizes[-1]

    monkeypatch.setattr(budgets, "reported_bytes", interrupted)
    report = recompute.jax.jit(mlp().step, budget="min").report(weights(), batch())
    assert len(report.search.candidates) == 1 and report.variant is Variant.RECOMPUTED
    assert "interrupted: the best result so far follows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"time_limit": 3}, ValueError, "has no effect without budget=: give budget= as well"),
        ({"time_limit": 0, "budget": 0.5}, ValueError, "a positive number of seconds, not 0"),
        ({"time_limit": "3", "budget": 0.5}, TypeError, "time_limit must be a number of seconds, not str"),
    ],
)
def test_invalid_time_limits_are_rejected(options: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        recompute.jax.jit(mlp().step, **options)


def test_remarks_are_located_in_the_model():
    """Remarks are located in the user's model, or name the step as a whole. They are not located at the call of the
    report, in a library, or in this package."""
    linen: Any = pytest.importorskip("flax.linen", reason="a library with operations of its own")
    model = linen.Sequential([linen.Dense(64), jax.nn.gelu, linen.Dense(16)] * 3)
    params = model.init(jax.random.key(0), batch())

    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            return (model.apply(params, x) ** 2).mean()

        return jax.value_and_grad(loss)(params)

    report = recompute.jax.jit(step).report(params, batch())
    places = {str(remark).partition(": remark")[0].rpartition("/")[2] for remark in report.remarks}
    sources = {buffer.source.rpartition("/")[2] for _, timeline in report.timelines for buffer in timeline.buffers}
    assert {place.partition(":")[0] for place in places | sources} <= {"test_disabled.py", "jit_step", "<unknown>", ""}
    assert any(source.startswith("test_disabled.py:") for source in sources)
