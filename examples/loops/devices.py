"""Gradient of a `shard_map` over eight devices that split the batch and the weights of every layer.

On a machine with fewer devices, run the step with `XLA_FLAGS=--xla_force_host_platform_device_count=8`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from ..models.step import Step, maybe_checkpoint, shape
from .transformer import normed

# layers, batch, width
SIZES = {"small": (3, 16, 16), "large": (6, 1024, 128)}


def layer(x: jax.Array, weights: Any) -> jax.Array:
    """Apply a layer whose weights are split by columns (`up`) and rows (`down`), and sum over the devices."""
    hidden = jax.nn.gelu(normed(x) @ weights["up"])
    return x + jax.lax.psum(hidden @ weights["down"], "model")


def build(size: str, checkpoint: bool = False) -> Step:
    layers, batch, width = SIZES[size]
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
    specs = [{"up": PartitionSpec(None, "model"), "down": PartitionSpec("model")} for _ in range(layers)]

    def inside(weights: Any, x: jax.Array) -> jax.Array:
        for weight in weights:
            x = maybe_checkpoint(layer, checkpoint)(x, weight)
        return x

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        arguments, made = (specs, PartitionSpec("data")), PartitionSpec("data")
        return jnp.mean(jax.shard_map(inside, mesh=mesh, in_specs=arguments, out_specs=made)(weights, x) ** 2)

    weights = [{"up": shape(width, 4 * width), "down": shape(4 * width, width)} for _ in range(layers)]
    return Step(jax.value_and_grad(loss), (weights, shape(batch, width)))
