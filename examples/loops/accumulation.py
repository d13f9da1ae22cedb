"""Gradient accumulation in a loop over microbatches, each with a scan over layers, and one gradient descent update."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..models.step import Step, shape
from . import transformer

MICROBATCHES = 4
LEARNING_RATE = 1e-2


def build(size: str, checkpoint: bool = False) -> Step:
    layers, batch, length, width, heads = transformer.SIZES[size]

    def step(weights: Any, batches: jax.Array) -> Any:
        def add(total: Any, x: jax.Array) -> Any:
            loss = lambda weights: transformer.mean_square(weights, x, heads, checkpoint)  # noqa: E731
            value, gradient = jax.value_and_grad(loss)(weights)
            return jax.tree.map(jnp.add, total, gradient), value

        total, values = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, weights), batches)
        return values.mean(), jax.tree.map(lambda w, g: w - LEARNING_RATE / MICROBATCHES * g, weights, total)

    batches = shape(MICROBATCHES, batch, length, width)
    return Step(step, (transformer.parameters(layers, width), batches), donated=(0,))
