"""A residual convolutional network of six blocks, each with two convolutions and batch normalization."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .step import Step, maybe_checkpoint, shape

BLOCKS = 6
# batch, height and width, channels
SIZES = {"small": (2, 8, 4), "large": (32, 32, 32)}
LAYOUT = ("NHWC", "HWIO", "NHWC")

Weights = dict[str, jax.Array]


def convolve(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def batch_norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    """Normalize over batch, height and width, with the statistics of the current batch."""
    centred = x - x.mean((0, 1, 2))
    return centred * jax.lax.rsqrt((centred**2).mean((0, 1, 2)) + 1e-5) * scale + shift


def block(p: Weights, x: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(batch_norm(convolve(x, p["first"]), p["scale1"], p["shift1"]))
    return jax.nn.relu(x + batch_norm(convolve(hidden, p["second"]), p["scale2"], p["shift2"]))


def build(size: str, checkpoint: bool = False) -> Step:
    batch, side, channels = SIZES[size]

    def loss(parameters: list[Weights], x: jax.Array) -> jax.Array:
        for index, p in enumerate(parameters):
            with jax.named_scope(f"block{index}"):
                x = maybe_checkpoint(block, checkpoint)(p, x)
        return jnp.mean(x**2)

    kernel, vector = shape(3, 3, channels, channels), shape(channels)
    vectors = {f"{kind}{index}": vector for kind in ("scale", "shift") for index in (1, 2)}
    parameters = [{"first": kernel, "second": kernel, **vectors} for _ in range(BLOCKS)]
    return Step(jax.value_and_grad(loss), (parameters, shape(batch, side, side, channels)))
