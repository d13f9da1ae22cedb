"""The network of MindSpore's recomputation tutorial: ten blocks of self-attention without projections.

As in the tutorial, the step computes the gradient with respect to the input, and each block adds its own weight to the
scores. Like `nn.Dropout(0.9)` in the tutorial, dropout keeps one value in ten, but it takes an explicit key.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, dropout, maybe_checkpoint, shape

BLOCKS = 10
RATE = 0.9
DIVISOR = 2.37891
# batch, length, heads, width of a head
SIZES = {"small": (2, 8, 2, 4), "large": (8, 128, 16, 32)}


def block(weight: jax.Array, x: jax.Array, key: jax.Array) -> jax.Array:
    queries = x.transpose(0, 2, 1, 3) / DIVISOR
    keys = x.transpose(0, 2, 3, 1) / DIVISOR
    bias = (1.0 - weight[:, None]) * -0.0001
    weights = dropout(key, jax.nn.softmax(bias + queries @ keys, axis=-1), RATE)
    return (weights @ x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)


def build(size: str, checkpoint: bool = False) -> Step:
    batch, length, heads, width = SIZES[size]

    def total(x: jax.Array, parameters: list[jax.Array], key: jax.Array) -> jax.Array:
        for index, weight in enumerate(parameters):
            with jax.named_scope(f"block{index}"):
                x = maybe_checkpoint(block, checkpoint)(weight, x, jax.random.fold_in(key, index))
        return jnp.sum(x)

    parameters = [shape(batch, length, length) for _ in range(BLOCKS)]
    return Step(jax.grad(total), (shape(batch, length, heads, width), parameters, shape(2, dtype=jnp.uint32)))
