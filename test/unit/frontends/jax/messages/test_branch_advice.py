"""Reports and refused budgets advise `jax.checkpoint` around the blocks in the branches of conditionals."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import recompute
from recompute.driver.verification.step_input import as_module
from recompute.frontends.jax.messages.branch_residuals import branch_advice
from recompute.support.diagnostics import Refusal
from recompute.test.training_steps import test_branches
from recompute.test.training_steps.test_branches import block, identity, step_of
from recompute.test.unit.frontends.jax.steps import jax, jnp, temporaries

Wrap = Callable[[Any], Any]
Model = Callable[[Wrap], Any]
ADVICE = "put jax.checkpoint around the blocks inside the branches"


def arguments() -> tuple[Any, ...]:
    weights, x, choice = test_branches.arguments()
    return weights[:4], x, choice


def unwrapped(block: Any) -> Any:
    return block


def cond_per_layer(wrap: Wrap) -> Any:
    def model(weights: Any, x: Any, choice: Any) -> Any:
        for index, w in enumerate(weights):
            x = jax.lax.cond(choice > index - 3, wrap(block), identity, w, x)
        return x

    return model


def cond_in_scan(wrap: Wrap) -> Any:
    def model(weights: Any, x: Any, choice: Any) -> Any:
        def body(x: Any, layer: Any) -> Any:
            w, index = layer
            return jax.lax.cond(choice > index - 3, wrap(block), identity, w, x), None

        stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *weights)
        return jax.lax.scan(body, x, (stacked, jnp.arange(len(weights))))[0]

    return model


def switches(wrap: Wrap) -> Any:
    """Two conditionals with two blocks in each of two branches."""

    def two_blocks(prepare: Any) -> Any:
        return lambda weights, x: wrap(block)(weights[1], wrap(block)(weights[0], prepare(x)))

    def model(weights: Any, x: Any, choice: Any) -> Any:
        branches = [two_blocks(jnp.sin), two_blocks(jnp.cos), identity]
        for first in range(0, len(weights), 2):
            x = jax.lax.switch(choice, branches, weights[first : first + 2], x)
        return x

    return model


def small_branches(_: Wrap) -> Any:
    """Conditionals whose branches compute one residual from one value."""

    def model(weights: Any, x: Any, choice: Any) -> Any:
        for index, w in enumerate(weights):
            x = jax.lax.cond(choice > index, jnp.sin, jnp.tanh, x @ w["a"] @ w["b"] @ w["c"])
        return x

    return model


def without_conditionals(wrap: Wrap) -> Any:
    def model(weights: Any, x: Any, _: Any) -> Any:
        for w in weights:
            x = wrap(block)(w, x)
        return x

    return model


MODELS = [cond_per_layer, cond_in_scan, switches]


@cache
def jitted(model: Model) -> Any:
    """Return the step of the model without `jax.checkpoint`, which the tests share."""
    return recompute.jax.jit(step_of(model(unwrapped)))


def advice_on(model: Any) -> str:
    return branch_advice(as_module(jax.jit(step_of(model)).lower(*arguments()).as_text(debug_info=True)))


@pytest.mark.parametrize("model", MODELS)
def test_advice_names_the_conditionals(model: Model):
    advice = advice_on(model(unwrapped))
    assert advice.startswith(ADVICE)
    assert "test_branch_advice.py:" in advice


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wrap", [jax.checkpoint, lambda block: jax.jit(jax.checkpoint(block))])
def test_no_advice_on_branches_that_are_checkpointed(model: Model, wrap: Wrap):
    assert not advice_on(model(wrap))


@pytest.mark.parametrize("model", [small_branches, without_conditionals])
def test_no_advice_without_large_residuals_of_branches(model: Model):
    assert not advice_on(model(unwrapped))


def test_advice_on_conditionals_inside_a_checkpointed_layer():
    """`jax.checkpoint` around a conditional does not change that its second forward pass returns the residuals."""

    def model(weights: Any, x: Any, choice: Any) -> Any:
        layer = jax.checkpoint(lambda w, x: jax.lax.cond(choice > 0, block, identity, w, x))
        for w in weights:
            x = layer(w, x)
        return x

    assert advice_on(model).startswith(ADVICE)


@pytest.mark.parametrize(("model", "share"), [(cond_per_layer, 1.01), (cond_in_scan, 1.01), (switches, 0.8)])
def test_advised_model_needs_no_more_memory(model: Model, share: float):
    advised = recompute.jax.jit(step_of(model(jax.checkpoint)))
    ours, theirs = (temporaries(step.lower(*arguments()).compile()) for step in (jitted(model), advised))
    assert theirs < share * ours


@pytest.mark.parametrize("budget", [None, "min"])
def test_report_gives_the_advice(budget: str | None):
    step = recompute.jax.jit(step_of(cond_per_layer(unwrapped)), budget=budget) if budget else jitted(cond_per_layer)
    report = step.report(*arguments())
    assert f"next: {ADVICE}" in " ".join(str(report).split())


def test_report_of_a_plain_step_within_its_budget_gives_no_advice():
    report = recompute.jax.jit(step_of(cond_per_layer(unwrapped)), budget=1.0).report(*arguments())
    assert ADVICE not in " ".join(str(report).split())


def test_refused_budget_gives_the_advice():
    step = recompute.jax.jit(step_of(cond_per_layer(unwrapped)), budget=0.01)
    with pytest.raises(Refusal, match=ADVICE):
        step.lower(*arguments())
