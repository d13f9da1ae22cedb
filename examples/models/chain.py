"""A chain of ten blocks that apply sin, exp, cos and tanh, without weights.

MindSpore's recomputation frees no memory on this network, because no gradient gates its copies.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, maybe_checkpoint, shape

BLOCKS = 10
SIDE = {"small": 8, "large": 1024}


def block(x: jax.Array) -> jax.Array:
    return jnp.tanh(jnp.cos(jnp.exp(jnp.sin(x))))


def build(size: str, checkpoint: bool = False) -> Step:
    def loss(x: jax.Array) -> jax.Array:
        for index in range(BLOCKS):
            with jax.named_scope(f"block{index}"):
                x = maybe_checkpoint(block, checkpoint)(x)
        return jnp.sum(x)

    return Step(jax.value_and_grad(loss), (shape(SIDE[size], SIDE[size]),))
