"""Blocks in the branches of a conditional are recomputed in the branches of its gradient, with equal results."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import recompute
from recompute.driver.budgets.fit import Verdict
from recompute.mlir_io.parser import parse_module
from recompute.test.unit.frontends.jax.steps import jax, jnp, temporaries
from recompute.transforms.preparation.timelines import peaks_of

WIDTH, ROWS, LAYERS = 64, 4096, 6
Step = Callable[..., Any]


def block(w: Any, x: Any) -> Any:
    h = jnp.tanh(x @ w["a"])
    h = jax.nn.gelu(h @ w["b"])
    h = h * jax.nn.sigmoid(h)
    return x + jnp.sin(h @ w["c"])


def blocks(weights: Any, x: Any) -> Any:
    for w in weights:
        x = block(w, x)
    return x


def identity(_: Any, x: Any) -> Any:
    return x


def tower(weights: Any, x: Any, choice: Any) -> Any:
    """Six blocks, or none."""
    return jax.lax.cond(choice > 0, blocks, identity, weights, x)


def towers(weights: Any, x: Any, choice: Any) -> Any:
    """Two towers of six blocks, whose inputs differ."""
    return jax.lax.cond(choice > 0, blocks, lambda weights, x: blocks(weights, jnp.cos(x)), weights, x)


def experts(weights: Any, x: Any, choice: Any) -> Any:
    """Three experts of two blocks each."""
    chosen = [lambda weights, x, n=n: blocks(weights[2 * n : 2 * n + 2], x) for n in range(3)]
    return jax.lax.switch(choice, [*chosen, lambda weights, x: blocks(weights, x)], weights, x)


def cond_per_block(weights: Any, x: Any, choice: Any) -> Any:
    """Six blocks, each under its own conditional."""
    for index, w in enumerate(weights):
        x = jax.lax.cond(choice > index - 3, block, identity, w, x)
    return x


def cond_in_scan(weights: Any, x: Any, choice: Any) -> Any:
    """A loop of six iterations with a conditional block."""

    def body(x: Any, layer: Any) -> Any:
        w, index = layer
        return jax.lax.cond(choice > index - 3, block, identity, w, x), None

    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *weights)
    return jax.lax.scan(body, x, (stacked, jnp.arange(LAYERS)))[0]


def after_blocks(weights: Any, x: Any, choice: Any) -> Any:
    """Two blocks whose output, which the conditional reads, is itself recomputed."""
    return tower(weights, blocks(weights[:2], x), choice)


def step_of(model: Step) -> Step:
    def step(weights: Any, x: Any, choice: Any) -> Any:
        loss, gradient = jax.value_and_grad(lambda weights: jnp.mean(model(weights, x, choice) ** 2))(weights)
        return loss, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient)

    return step


def arguments(choice: int = 1) -> tuple[Any, ...]:
    numbers = np.random.default_rng(0)
    shapes = {"a": (WIDTH, 2 * WIDTH), "b": (2 * WIDTH, 2 * WIDTH), "c": (2 * WIDTH, WIDTH)}
    weights = [
        {name: jnp.asarray(0.1 * numbers.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
        for _ in range(LAYERS)
    ]
    return weights, jnp.asarray(numbers.normal(size=(ROWS, WIDTH)), jnp.float32), jnp.int32(choice)


@pytest.mark.parametrize(
    ("model", "share"),
    [(tower, 0.35), (towers, 0.35), (experts, 0.4), (after_blocks, 0.4), (cond_per_block, 0.16), (cond_in_scan, 0.16)],
)
def test_blocks_in_branches_are_recomputed_in_the_branches_of_the_gradient(model: Step, share: float):
    """The results are equal whichever branch runs, and no residual of a copied conditional leaves its branch."""
    step = step_of(model)
    plain, ours = (jitted(step).lower(*arguments()).compile() for jitted in (jax.jit, recompute.jax.jit))
    assert temporaries(ours) < share * temporaries(plain)
    for inputs in map(arguments, range(2)):
        results = ours(*inputs), plain(*inputs)
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), *results))


def test_plan_of_a_step_with_joined_branches_applies_to_the_step():
    text = jax.jit(step_of(tower)).lower(*arguments()).as_text(debug_info=True)
    rewritten = recompute.rewrite(text)
    assert {plan.function for plan in rewritten.plans} > {"main"}
    assert recompute.rewrite(text, plan=rewritten.plans).text == rewritten.text


@pytest.mark.parametrize(
    ("memory_model", "budget"), [("xla", "45%"), ("order", "50%"), ("xla", "min"), ("order", "min")]
)
def test_budgets_that_the_choice_without_a_budget_meets_are_not_refused(memory_model: str, budget: str):
    """The solvers and the pool of candidates do not join branches, but the choice without a budget does."""
    text = jax.jit(step_of(tower)).lower(*arguments()).as_text(debug_info=True)
    rewritten = recompute.rewrite(text, budget=budget, memory_model=memory_model)
    plain, ours = (peaks_of(parse_module(program), memory_model)["main"] for program in (text, rewritten.text))
    assert ours <= 0.5 * plain


def test_no_minimum_is_proved_if_conditionals_may_be_divided():
    """The solvers prove a minimum for whole conditionals, and the choice without a budget needs less."""
    text = jax.jit(step_of(tower)).lower(*arguments()).as_text(debug_info=True)
    answer = recompute.fit(text, "20%")
    assert answer.minimum_bytes is None and answer.verdict is Verdict.NOT_FOUND
    assert answer.smallest_peaks["main"] < answer.plain["main"] / 2
    with pytest.raises(recompute.Refusal, match="conditionals that are copied as a whole, and the choice without"):
        recompute.rewrite(text, budget="20%", memory_model="order")


def test_remarks_do_not_state_that_a_divided_conditional_is_not_recomputed():
    text = jax.jit(step_of(after_blocks)).lower(*arguments()).as_text(debug_info=True)
    rewritten = recompute.rewrite(text)
    assert "joined_branch" not in rewritten.text
    assert not [remark for remark in rewritten.remarks if "stablehlo.case" in remark.reason]
