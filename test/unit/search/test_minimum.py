"""The budget `min` needs no more than the choice without a budget, whatever the solvers and the pool offer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import recompute
from recompute.options.memory_model import MODELS
from recompute.planning.plan import plan_nothing
from recompute.search.budget import solver_rounds
from recompute.search.budget.rounds import Rounds
from recompute.search.outcome import RewriteResult
from recompute.support.diagnostics import Refusal
from recompute.test.examples import original


def worst_of_pool(self: Rounds[object, RewriteResult], _: int) -> RewriteResult | None:
    """Return the candidate with the highest need that the search for `min` could have chosen; None for a limit."""
    if self.limit is not None:
        return None
    results = [self.measure(candidate, 0.0) for candidate in self.pool.candidates]
    return max((result for result in results if result is not None), key=lambda result: result[0])[1]


@pytest.mark.parametrize("model", MODELS)
def test_the_minimum_needs_no_more_than_the_choice_without_a_budget(model: str, monkeypatch: pytest.MonkeyPatch):
    def saves_nothing(self: solver_rounds.SolverRounds) -> RewriteResult:
        return self.problem.evaluate(plan_nothing, self.loops)

    step = original("mlp.small.mlir")
    monkeypatch.setattr(solver_rounds.SolverRounds, "best", saves_nothing)
    monkeypatch.setattr(Rounds, "best", worst_of_pool)
    peaks = list[int]()
    for options in (recompute.RecomputeOptions(), recompute.RecomputeOptions(budget="min", memory_model=model)):
        rewritten = recompute.rewrite(step, options)
        ((before, after),) = rewritten.memory(model).values()
        peaks.append(after.peak_bytes)
        assert after.peak_bytes < before.peak_bytes
    assert peaks[1] <= peaks[0]


RECURRENCE = """
func.func @step(%x: tensor<1024xf32>) -> (tensor<f32>, tensor<1024xf32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.sine %x : tensor<1024xf32>
  %h1 = stablehlo.tanh %a : tensor<1024xf32>
  %h2 = stablehlo.add %h1, %a : tensor<1024xf32>
  %h3 = stablehlo.exponential %h2 {mark}: tensor<1024xf32>
  %h4 = stablehlo.multiply %h3, %a : tensor<1024xf32>
  %h5 = stablehlo.tanh %h4 : tensor<1024xf32>
  %h6 = stablehlo.add %h5, %a : tensor<1024xf32>
  %h7 = stablehlo.cosine %h6 : tensor<1024xf32>
  %h8 = stablehlo.tanh %h7 : tensor<1024xf32>
  %loss = stablehlo.reduce(%h8 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<1024xf32>, tensor<f32>) -> tensor<f32>
  %g8 = stablehlo.multiply %h8, %h7 : tensor<1024xf32>
  %g7 = stablehlo.multiply %g8, %h6 : tensor<1024xf32>
  %g6 = stablehlo.multiply %g7, %h5 : tensor<1024xf32>
  %g5 = stablehlo.multiply %g6, %h4 : tensor<1024xf32>
  %g4 = stablehlo.multiply %g5, %h3 : tensor<1024xf32>
  %g3 = stablehlo.multiply %g4, %h2 : tensor<1024xf32>
  %g2 = stablehlo.multiply %g3, %h1 : tensor<1024xf32>
  %g1 = stablehlo.multiply %g2, %a : tensor<1024xf32>
  func.return %loss, %g1 : tensor<f32>, tensor<1024xf32>
}}
"""


def chain(count: int) -> str:
    """Return a chain of unary operations; the greedy search alone stops above the peak that budgets reach."""
    kind = "tensor<1024xf32>"
    values = ["%x", *(f"%a{number}" for number in range(count))]
    forward = [f"{values[at + 1]} = stablehlo.tanh {values[at]} : {kind}" for at in range(count)]
    gradients = [values[-1], *(f"%g{number}" for number in range(count))]
    backward = [
        f"{gradients[at + 1]} = stablehlo.multiply {gradients[at]}, {values[count - 1 - at]} : {kind}"
        for at in range(count)
    ]
    loss = (
        f"%loss = stablehlo.reduce({values[-1]} init: %zero) applies stablehlo.add across dimensions = [0] "
        f": ({kind}, tensor<f32>) -> tensor<f32>"
    )
    lines = [
        f"func.func @step(%x: {kind}) -> (tensor<f32>, {kind}) {{",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        *forward,
        loss,
        *backward,
        f"func.return %loss, {gradients[-1]} : tensor<f32>, {kind}",
        "}",
    ]
    return "\n".join(lines)


STEPS = {
    "chain": chain(7),
    "recurrence": RECURRENCE.format(mark=""),
    "recurrence with a mark": RECURRENCE.format(mark='{recompute.recompute = "must_save"} '),
}


@pytest.mark.parametrize("target", ["none", "stablehlo"])
@pytest.mark.parametrize("step", STEPS)
def test_no_budget_in_program_order_needs_less(step: str, target: str):
    def peak(budget: str) -> int | None:
        options = {"budget": budget, "memory_model": "order", "primal_results": (0,), "target": target}
        try:
            rewritten = recompute.rewrite(STEPS[step], **options)  # pyright: ignore[reportArgumentType]
        except Refusal:
            return None
        assert rewritten.proof is not None and rewritten.proof.proved
        return recompute.memory(rewritten.module)["step"].peak_bytes

    least, reached = peak("min"), [peak(f"{share}%") for share in range(25, 100, 10)]
    assert least is not None and any(reached)
    assert least <= min(bytes_reached for bytes_reached in reached if bytes_reached is not None)


def test_the_minimum_needs_no_more_than_a_share() -> None:
    """A share reaches the lowest peak of this step with a smaller variant of a candidate of `min`."""
    jax: Any = pytest.importorskip("jax")

    def loss(weights: Any, x: Any) -> Any:
        for weight in weights:
            x = jax.numpy.tanh(x @ weight) + jax.numpy.sin(x)
        return jax.numpy.mean(x**2)

    arguments = [jax.ShapeDtypeStruct((16, 16), "float32")] * 3, jax.ShapeDtypeStruct((64, 16), "float32")
    step = jax.jit(jax.value_and_grad(loss)).lower(*arguments).as_text()
    peaks = dict[str, int]()
    for budget in ("min", "70%", "60%", "50%"):
        with suppress(Refusal):
            ((_, after),) = recompute.rewrite(step, budget=budget, memory_model="xla").memory("xla").values()
            peaks[budget] = after.peak_bytes
    assert len(peaks) > 1 and min(peaks.values()) == peaks["min"]
