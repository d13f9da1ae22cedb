"""Python API of "will it fit": the command's answer as data, bounds for cut loops, and early stops."""

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.driver.fit import Verdict
from recompute.support.diagnostics import Refusal
from recompute.test.examples import original
from recompute.test.unit.tools.test_planned_step import KIB, STEP


def test_fit_answers_yes_recomputed_or_no() -> None:
    plain = recompute.fit(STEP, "32KiB")
    assert plain.fits and plain.verdict is Verdict.AS_IT_IS and plain.extra_percent == 0
    again = recompute.fit(STEP, 28 * KIB)
    assert again.fits and again.verdict is Verdict.RECOMPUTED and again.copies == 1
    assert again.extra_percent == pytest.approx(again.bound_percent, abs=1e-4) == pytest.approx(11.1099, abs=1e-4)
    assert again.peaks["step"] == 16 * KIB and again.finished and again.loops is None
    no = recompute.fit(STEP, "23KiB")
    assert not no.fits and no.minimum_bytes == 24 * KIB and no.peaks == {}
    assert no.lower_bound is not None and no.lower_bound.operation == "stablehlo.multiply %g (m.py:7:4)"
    assert recompute.fit(STEP, 0.5).fits is False


def test_fit_prints_the_sentence_of_the_command_line_and_the_memory_model() -> None:
    first, needs, again = str(recompute.fit(STEP, "28KiB")).splitlines()
    assert first.startswith("yes, with recomputation: the step fits in 28KiB at 11.")
    assert needs.startswith("  @step needs 28.0 KiB of device memory in program order: temporaries")
    assert again == "  1 operation runs again"
    assert str(recompute.fit(STEP, "23KiB")).startswith(
        "no: the step does not fit in 23KiB: the proven minimum is 24.0 KiB"
    )
    assert "of device memory by the model of XLA:CPU: " in str(recompute.fit(STEP, "95%", model="xla"))


def test_minimum_is_proved_for_any_budget_in_order_only() -> None:
    assert recompute.fit(STEP, "1GiB").minimum_bytes == recompute.fit(STEP, "1KiB").minimum_bytes == 24 * KIB
    by_model = recompute.fit(STEP, "95%", model="xla")
    assert by_model.minimum_bytes is None and by_model.bound_percent is None


def test_invalid_budget_or_step_is_rejected() -> None:
    with pytest.raises(ValueError, match="invalid budget 'min'"):
        recompute.fit(STEP, "min")
    with pytest.raises(ValueError, match="invalid budget"):
        recompute.fit(STEP, "8 apples")
    with pytest.raises(Refusal, match="no gradient found"):
        recompute.fit("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }", "50%")


@pytest.mark.slow("mlp")
@pytest.mark.parametrize("name", ["mlp.small.mlir"])
def test_stopped_fit_returns_the_best_plan_so_far(name: str) -> None:
    whole = recompute.fit(original(name), "60%")
    stopped = recompute.fit(original(name), "60%", stop=lambda: True)
    assert whole.finished and whole.fits and whole.bound_percent is not None
    assert not stopped.finished and (stopped.fits or stopped.reason)
    if stopped.fits:
        assert stopped.extra_percent >= whole.bound_percent
        assert all(stopped.peaks[first] <= most for first, most in stopped.limits.items())


def test_step_with_cut_loops_has_a_bound(scanned: str) -> None:
    """The bound equals the bound of the step with its loops cut as reported."""
    result = recompute.fit(scanned, "60%")
    assert result.verdict is Verdict.RECOMPUTED and isinstance(result.loops, str | bool)
    assert result.bound_percent is not None and 0 < result.bound_percent <= result.extra_percent


@pytest.fixture(scope="module")
def scanned() -> str:
    jax: Any = pytest.importorskip("jax")
    jnp = jax.numpy

    def loss(w: Any, x: Any) -> Any:
        def body(h: Any, w: Any) -> tuple[Any, None]:
            a = jnp.tanh(h @ w)
            return h + jnp.sin(a) * jnp.exp(-a), None

        h, _ = jax.lax.scan(body, x, w)
        return jnp.sum(jnp.cos(h) * h)

    weights, batch = jnp.ones((8, 16, 16)), jnp.ones((64, 16))
    return str(jax.jit(jax.value_and_grad(loss)).lower(weights, batch).as_text(debug_info=True))
