"""Six wide blocks, each of which sums eight parallel relu branches at its end."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, maybe_checkpoint, shape

BLOCKS = 6
BRANCHES = 8
# batch, width
SIZES = {"small": (4, 8), "large": (2048, 256)}

Weights = list[jax.Array]


def block(weights: Weights, x: jax.Array) -> jax.Array:
    return sum((jax.nn.relu(x @ kernel) * jax.nn.relu(-x) for kernel in weights), x)


def build(size: str, checkpoint: bool = False) -> Step:
    batch, width = SIZES[size]

    def loss(parameters: list[Weights], x: jax.Array) -> jax.Array:
        for index, weights in enumerate(parameters):
            with jax.named_scope(f"block{index}"):
                x = maybe_checkpoint(block, checkpoint)(weights, x)
        return jnp.mean(x**2)

    parameters = [[shape(width, width) for _ in range(BRANCHES)] for _ in range(BLOCKS)]
    return Step(jax.value_and_grad(loss), (parameters, shape(batch, width)))
