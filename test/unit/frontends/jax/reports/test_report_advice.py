"""The advice and the reasons that a report gives: the lines `next:` and `why:`."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import recompute
from recompute.frontends.jax.compilation.budgeted_result import CompiledCandidate
from recompute.frontends.jax.messages.why_plain import PlainReason
from recompute.support.units import format_bytes
from recompute.test.unit.frontends.jax.steps import batch, forward, jax, jnp, mlp, weights


def test_options_without_effect_beside_a_checkpoint_are_explained():
    def loss(weights: Any, x: Any) -> Any:
        for number, w in enumerate(weights):
            with jax.named_scope(f"layer{number}"):
                x = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))(x, w)
        return (x**2).mean()

    step = recompute.jax.jit(jax.value_and_grad(loss), segments="layer*")
    text = " ".join(str(step.report([jnp.ones((32, 32)) / 10] * 4, jnp.ones((256, 32)))).split())
    assert "why: its own jax.checkpoint already recomputes" in text
    assert "next: remove jax.checkpoint from the model" in text and "leave out segments=" in text


def test_summary_gives_the_reason_if_nothing_can_be_freed():
    step = jax.value_and_grad(lambda w, x: jnp.mean((x @ w) ** 2))
    arguments = jnp.ones((64, 8)), jnp.ones((8192, 64))
    text = " ".join(str(recompute.jax.jit(step).report(*arguments)).split())
    assert "why: segment" in text and "not recomputed: " in text and "gate" not in text
    with pytest.raises(recompute.Refusal, match=r"\(strict\); segment.* not recomputed: "):
        recompute.jax.jit(step, strict=True).report(*arguments)


def test_summary_of_a_step_without_saving_is_short():
    report = recompute.jax.jit(forward()).report(weights(), batch())
    assert str(report).splitlines()[-2] == "next: take the gradient inside: recompute.jax.jit(jax.value_and_grad(loss))"


def test_a_message_without_a_remedy_is_printed_once():
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    without_remedy = PlainReason("step", "a reason", remedy="")
    text = str(replace(report, plain_reason=without_remedy, stored=replace(report.stored, saved=())))
    assert text.count("a reason") == 1 and "why: step: the plain step runs: a reason\nnext: donate_argnums=0" in text


def _donation_in(step: Any, *args: Any, **kwargs: Any) -> str:
    report = recompute.jax.explain(step, *args, budget="1GiB", **kwargs)
    lines = " ".join(str(report).split())
    return lines.partition("next: donate")[2].partition(" frees ")[0]


def test_donation_is_proposed_if_the_step_returns_an_updated_argument():
    step, gradient = mlp().step, jax.value_and_grad(forward())
    assert _donation_in(step, weights(), batch()) == "_argnums=0"
    assert _donation_in(jax.jit(lambda n, w, x: step(w, x), static_argnums=0), 1, weights(), batch()) == "_argnums=1"
    assert _donation_in(lambda w, x: step(w, x), x=batch(), w=weights()) == "_argnames='w'"
    assert _donation_in(jax.jit(step, donate_argnums=0), weights(), batch()) == ""
    assert _donation_in(gradient, weights(), batch()) == "", "a gradient is no new value of its weight"


def test_a_much_cheaper_plan_that_needs_hardly_more_is_named():
    report = recompute.jax.jit(mlp().step, budget="min").report(weights(), batch())
    needs, plain = report.chosen.temporaries, report.plain.temporaries
    assert needs is not None and plain is not None
    runs = CompiledCandidate("runs", needs, needs, 100, None)

    def advice(*others: CompiledCandidate) -> str:
        lines = str(replace(report, search=replace(report.search, candidates=(runs, *others)))).splitlines()
        return next(line for line in lines if line.startswith("next: "))

    near, far = needs + needs // 20, 2 * needs
    assert advice(CompiledCandidate("near", near, near, 40, None)).startswith(
        f"next: budget={-(-100 * near // plain) / 100:g} needs {format_bytes(near)}, hardly more than "
        f"{format_bytes(needs)}, at 40 % of the extra"
    )
    for other in (CompiledCandidate("far", far, far, 40, None), CompiledCandidate("costly", near, near, 90, None)):
        assert advice(other).startswith("next: this is the least memory that the search finds")


def test_advice_after_the_minimum_names_no_smaller_budget() -> None:
    report = recompute.jax.jit(mlp().step, budget="min").report(weights(), batch())
    runs = next(
        candidate for candidate in report.search.candidates if candidate.measured_bytes == report.chosen.temporaries
    )
    alone = replace(report, search=replace(report.search, candidates=(runs,)))
    assert report.search.is_minimum and report.search.is_complete
    advice = "next: this is the least memory that the search finds; budget=0.5"
    assert advice in str(alone) and "time_limit" not in str(alone) and "a smaller one" not in str(alone)
    assert "with a larger time_limit=, or without one, it may find a smaller plan" in " ".join(
        str(replace(alone, search=replace(alone.search, is_complete=False))).split()
    )
    within = recompute.jax.jit(mlp().step, budget=0.6).report(weights(), batch())
    assert not within.search.is_minimum


def test_a_small_saving_for_much_work_is_remarked():
    report = recompute.jax.jit(mlp().step).report(weights(), batch())
    plain = replace(report.plain, temporaries=100_000, flops=1e6)
    small = replace(report, plain=plain, chosen=replace(report.chosen, temporaries=97_000, flops=1.41e6))
    assert 'next: 41 % more FLOPs for 3 % less memory: policy="dots_saveable"' in str(small)
    large = replace(small, chosen=replace(small.chosen, temporaries=30_000))
    assert "FLOPs for" not in str(large) and 'next: budget="min"' in str(large)


def test_dominant_value_is_named() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jax.nn.logsumexp(x @ w).mean()

    step = recompute.jax.jit(jax.value_and_grad(loss))
    lines = str(step.report(jax.numpy.ones((8, 4096)), jax.numpy.ones((64, 8)))).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("next: "))
    assert "saves 1.0 MiB: compute that part of the model in microbatches" in " ".join(" ".join(lines[start:]).split())
    assert max(map(len, lines)) <= 100
