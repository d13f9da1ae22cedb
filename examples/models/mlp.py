"""A residual MLP of three tanh blocks with dropout, trained by gradient descent with donated weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, dropout, maybe_checkpoint, shape

BLOCKS = 3
RATE = 0.1
LEARNING_RATE = 1e-2
# batch, width, hidden width
SIZES = {"small": (32, 8, 32), "large": (2048, 512, 2048)}

Weights = tuple[jax.Array, jax.Array]


def block(weights: Weights, x: jax.Array, key: jax.Array) -> jax.Array:
    up, down = weights
    hidden = jnp.tanh(x @ up)
    return x + dropout(key, hidden, RATE) @ down


def build(size: str, checkpoint: bool = False) -> Step:
    batch, width, hidden = SIZES[size]

    def loss(parameters: list[Weights], x: jax.Array, key: jax.Array) -> jax.Array:
        for index, weights in enumerate(parameters):
            with jax.named_scope(f"block{index}"):
                x = maybe_checkpoint(block, checkpoint)(weights, x, jax.random.fold_in(key, index))
        return jnp.mean(x**2)

    def step(parameters: list[Weights], x: jax.Array, key: jax.Array):
        value, gradients = jax.value_and_grad(loss)(parameters, x, key)
        return value, jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients)

    parameters = [(shape(width, hidden), shape(hidden, width)) for _ in range(BLOCKS)]
    arguments = (parameters, shape(batch, width), shape(2, dtype=jnp.uint32))
    return Step(step, arguments, donated=(0,))
