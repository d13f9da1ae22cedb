"""A Transformer whose layers run in one `lax.scan` over their stacked weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..models.step import Step, maybe_checkpoint, shape

# layers, batch, length, width, heads
SIZES = {"small": (4, 2, 16, 16, 2), "large": (8, 8, 128, 128, 8)}


def normed(x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


def attention(q: jax.Array, k: jax.Array, v: jax.Array, heads: int) -> jax.Array:
    batch, length, width = q.shape
    q, k, v = (entry.reshape(batch, length, heads, -1).swapaxes(1, 2) for entry in (q, k, v))
    mixed = jax.nn.softmax(q @ k.swapaxes(-1, -2) / (width / heads) ** 0.5) @ v
    return mixed.swapaxes(1, 2).reshape(batch, length, width)


def layer(x: jax.Array, weights: Any, heads: int) -> jax.Array:
    y = normed(x)
    x = x + attention(*(y @ weights[name] for name in "qkv"), heads) @ weights["o"]
    return x + jax.nn.gelu(normed(x) @ weights["up"]) @ weights["down"]


def parameters(layers: int, width: int) -> dict[str, Any]:
    square = {name: shape(layers, width, width) for name in "qkvo"}
    return square | {"up": shape(layers, width, 4 * width), "down": shape(layers, 4 * width, width)}


def mean_square(weights: Any, x: jax.Array, heads: int, checkpoint: bool) -> jax.Array:
    def body(x: jax.Array, weights: Any) -> tuple[jax.Array, None]:
        return layer(x, weights, heads), None

    x, _ = jax.lax.scan(maybe_checkpoint(body, checkpoint), x, weights)
    return jnp.mean(x**2)


def build(size: str, checkpoint: bool = False) -> Step:
    layers, batch, length, width, heads = SIZES[size]

    def step(weights: Any, x: jax.Array) -> Any:
        return jax.value_and_grad(lambda weights: mean_square(weights, x, heads, checkpoint))(weights)

    return Step(step, (parameters(layers, width), shape(batch, length, width)))
