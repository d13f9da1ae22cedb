"""Segments are found for `jax.grad` without the loss, where no result needs the end of the forward pass."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest

import recompute
from recompute.test.unit.frontends.jax.steps import far_apart, jax, jnp, temporaries

pytestmark = pytest.mark.slow

LAYERS, ROWS, WIDTH = 8, 512, 32


def loss(weights: Any, x: Any) -> Any:
    for into, out in zip(*weights, strict=True):
        x = x + jnp.tanh(jnp.sin(x @ into)) @ out
    return (x**2).mean()


def given() -> tuple[Any, Any]:
    keys = jax.random.split(jax.random.key(0), 3)
    weights = [
        jax.random.normal(keys[0], (LAYERS, WIDTH, 4 * WIDTH)),
        jax.random.normal(keys[1], (LAYERS, 4 * WIDTH, WIDTH)),
    ]
    return [weight / 8 for weight in weights], jax.random.normal(keys[2], (ROWS, WIDTH))


def summed(gradient: Any) -> Any:
    """Return the step that sums gradients over microbatches."""

    def step(weights: Any, x: Any) -> Any:
        def add(at: Any, total: Any) -> Any:
            return jax.tree.map(jnp.add, total, gradient(weights, x[at]))

        return jax.lax.fori_loop(0, x.shape[0], add, jax.tree.map(jnp.zeros_like, weights))

    return step


def test_gradient_in_a_loop_over_batches_saves_memory() -> None:
    weights, x = given()
    batches = jnp.stack([x, 2 * x, 3 * x])
    lowered = recompute.jax.jit(summed(jax.grad(loss))).lower(weights, batches)
    compiled = lowered.compile()
    assert lowered.why is None
    assert temporaries(compiled) < 0.6 * temporaries(lowered.compile_plain())
    assert far_apart(compiled(weights, batches), jax.jit(summed(jax.grad(loss)))(weights, batches)) == []


def test_gradient_alone_needs_little_more_than_with_the_loss() -> None:
    both = recompute.jax.jit(jax.value_and_grad(loss)).lower(*given()).compile()
    lowered = recompute.jax.jit(jax.grad(loss)).lower(*given())
    assert temporaries(lowered.compile()) <= 1.1 * temporaries(both)
