"""A residual MLP of twenty GELU layers, whose weights are much larger than the activations of a layer."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, maybe_checkpoint, shape

LAYERS = 20
# batch, width, hidden width
SIZES = {"small": (4, 4, 8), "large": (512, 512, 2048)}

Weights = tuple[jax.Array, jax.Array]


def layer(weights: Weights, x: jax.Array) -> jax.Array:
    up, down = weights
    return x + jax.nn.gelu(x @ up) @ down


def build(size: str, checkpoint: bool = False) -> Step:
    batch, width, hidden = SIZES[size]

    def loss(parameters: list[Weights], x: jax.Array) -> jax.Array:
        for index, weights in enumerate(parameters):
            with jax.named_scope(f"layer{index}"):
                x = maybe_checkpoint(layer, checkpoint)(weights, x)
        return jnp.mean(x**2)

    parameters = [(shape(width, hidden), shape(hidden, width)) for _ in range(LAYERS)]
    return Step(jax.value_and_grad(loss), (parameters, shape(batch, width)))
