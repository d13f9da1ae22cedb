"""An encoder that is applied to two inputs with the same weights, so that its scopes are entered twice."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, maybe_checkpoint, shape

LAYERS = 3
# batch, width, hidden width
SIZES = {"small": (32, 4, 8), "large": (2048, 256, 1024)}

Weights = tuple[jax.Array, jax.Array]


def layer(weights: Weights, x: jax.Array) -> jax.Array:
    up, down = weights
    return x + jnp.tanh(x @ up) @ down


def build(size: str, checkpoint: bool = False) -> Step:
    batch, width, hidden = SIZES[size]

    def encode(parameters: list[Weights], x: jax.Array) -> jax.Array:
        for index, weights in enumerate(parameters):
            with jax.named_scope(f"layer{index}"):
                x = maybe_checkpoint(layer, checkpoint)(weights, x)
        return x

    def loss(parameters: list[Weights], left: jax.Array, right: jax.Array) -> jax.Array:
        return jnp.mean((encode(parameters, left) - encode(parameters, right)) ** 2)

    parameters = [(shape(width, hidden), shape(hidden, width)) for _ in range(LAYERS)]
    return Step(jax.value_and_grad(loss), (parameters, shape(batch, width), shape(batch, width)))
