"""LSTM over 256 time steps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..models.step import Step, maybe_checkpoint, shape

# steps of time, batch, width
SIZES = {"small": (16, 4, 8), "large": (256, 64, 128)}


def build(size: str, checkpoint: bool = False) -> Step:
    steps, batch, width = SIZES[size]

    def cell(state: Any, x: jax.Array, weights: jax.Array) -> Any:
        hidden, memory = state
        gates = jnp.concatenate([x, hidden], -1) @ weights
        take, forget, new, give = jnp.split(gates, 4, -1)
        memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(take) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(give) * jnp.tanh(memory)
        return (hidden, memory), hidden

    def loss(weights: jax.Array, xs: jax.Array) -> jax.Array:
        state = jnp.zeros((batch, width)), jnp.zeros((batch, width))
        _, hidden = jax.lax.scan(maybe_checkpoint(lambda state, x: cell(state, x, weights), checkpoint), state, xs)
        return jnp.mean(hidden**2)

    return Step(jax.value_and_grad(loss), (shape(2 * width, 4 * width), shape(steps, batch, width)))
