"""Four fully connected layers with relu and a squared error, as in Paddle's `RecomputeOptimizer` example."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, maybe_checkpoint, shape

LAYERS = 4
LEARNING_RATE = 0.01
# batch, width
SIZES = {"small": (4, 8), "large": (4096, 512)}

Weights = tuple[jax.Array, jax.Array]


def layer(weights: Weights, x: jax.Array) -> jax.Array:
    kernel, bias = weights
    return jax.nn.relu(x @ kernel + bias)


def build(size: str, checkpoint: bool = False) -> Step:
    batch, width = SIZES[size]

    def loss(parameters: list[Weights], x: jax.Array, target: jax.Array) -> jax.Array:
        for index, weights in enumerate(parameters[:LAYERS]):
            with jax.named_scope(f"fc_{index}"):
                x = maybe_checkpoint(layer, checkpoint)(weights, x)
        kernel, bias = parameters[LAYERS]
        return jnp.mean((x @ kernel + bias - target) ** 2)

    def step(parameters: list[Weights], x: jax.Array, target: jax.Array):
        value, gradients = jax.value_and_grad(loss)(parameters, x, target)
        return value, jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients)

    parameters = [(shape(width, width), shape(width)) for _ in range(LAYERS)]
    parameters.append((shape(width, 1), shape(1)))
    return Step(step, (parameters, shape(batch, width), shape(batch, 1)), donated=(0,))
