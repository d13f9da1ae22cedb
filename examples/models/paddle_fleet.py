"""The network from Paddle's Fleet page on recomputation: five blocks of linear, dropout and relu layers, trained with
stochastic gradient descent."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, dropout, maybe_checkpoint, shape

BLOCKS = 5
RATE = 0.5
LEARNING_RATE = 0.01
# batch, width; Paddle's page uses (1, 10)
SIZES = {"small": (32, 8), "large": (2048, 512)}

Weights = list[jax.Array]


def block(weights: Weights, x: jax.Array, key: jax.Array) -> jax.Array:
    first, second, third = weights
    hidden = jax.nn.relu(dropout(key, x @ first, RATE))
    return jax.nn.relu(hidden @ second) @ third


def build(size: str, checkpoint: bool = False) -> Step:
    batch, width = SIZES[size]

    def loss(parameters: list[Weights], x: jax.Array, key: jax.Array) -> jax.Array:
        for index, weights in enumerate(parameters):
            with jax.named_scope(f"block_{index}"):
                x = maybe_checkpoint(block, checkpoint)(weights, x, jax.random.fold_in(key, index))
        return jnp.mean(x)

    def step(parameters: list[Weights], x: jax.Array, key: jax.Array):
        value, gradients = jax.value_and_grad(loss)(parameters, x, key)
        return value, jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients)

    square = shape(width, width)
    parameters = [[square, square, square if index < BLOCKS - 1 else shape(width, 1)] for index in range(BLOCKS)]
    return Step(step, (parameters, shape(batch, width), shape(2, dtype=jnp.uint32)), donated=(0,))
