"""Neural ordinary differential equation, solved with a number of time steps that is an argument (at most 64).

JAX cannot differentiate a loop of run-time length in reverse mode. Instead, the model scans over the maximum number of
time steps, and leaves the state unchanged after the last time step. `ode.mlir` contains the loop of run-time length, in
the form that compilers produce if they can differentiate such loops. `recompute` leaves this loop unchanged, and gives
the reason in a remark.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..models.step import Step, maybe_checkpoint, shape

MOST = 64
# batch, width, hidden width
SIZES = {"small": (4, 4, 8), "large": (512, 64, 256)}


def build(size: str, checkpoint: bool = False) -> Step:
    batch, width, hidden = SIZES[size]

    def slope(x: jax.Array, weights: Any) -> jax.Array:
        return jnp.tanh(x @ weights["in"]) @ weights["out"]

    def loss(weights: Any, x: jax.Array, steps: jax.Array) -> jax.Array:
        length = 1.0 / steps

        def advance(x: jax.Array, number: jax.Array) -> tuple[jax.Array, None]:
            """Advance by one time step of Heun's method."""
            first = slope(x, weights)
            second = slope(x + length * first, weights)
            return jnp.where(number < steps, x + 0.5 * length * (first + second), x), None

        x, _ = jax.lax.scan(maybe_checkpoint(advance, checkpoint), x, jnp.arange(MOST))
        return jnp.mean(x**2)

    weights = {"in": shape(width, hidden), "out": shape(hidden, width)}
    return Step(jax.value_and_grad(loss), (weights, shape(batch, width), shape(dtype=jnp.int32)))
