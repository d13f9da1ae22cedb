"""Layers of the open half, with the channels last and weights in dictionaries."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.step_parts import shape

Weights = dict[str, jax.Array]


def conv(x: jax.Array, w: jax.Array, stride: int = 1, groups: int = 1) -> jax.Array:
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=numbers, feature_group_count=groups
    )


def upconv(x: jax.Array, w: jax.Array) -> jax.Array:
    """Apply a transposed convolution that doubles height and width."""
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def avg_pool(x: jax.Array) -> jax.Array:
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def batch_norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    axes = tuple(range(x.ndim - 1))
    centred = x - x.mean(axes)
    return centred * lax.rsqrt(jnp.square(centred).mean(axes) + 1e-5) * scale + shift


def group_norm(x: jax.Array, scale: jax.Array, shift: jax.Array, groups: int) -> jax.Array:
    parts = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
    axes = (*range(1, x.ndim - 1), x.ndim)
    mean, variance = parts.mean(axes, keepdims=True), parts.var(axes, keepdims=True)
    return ((parts - mean) / jnp.sqrt(variance + 1e-5)).reshape(x.shape) * scale + shift


def layer_norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + shift


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def split_heads(x: jax.Array, heads: int) -> jax.Array:
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)


def attend(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """Apply attention to arrays of shape [batch, length, heads, width], and join the heads of the result."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + (1.0 - mask) * -1e9
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
    return mixed.reshape(*mixed.shape[:2], -1)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    logits = logits.astype(jnp.float32)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -picked.mean()


def normed(width: int) -> dict[str, jax.ShapeDtypeStruct]:
    return {"scale": shape(width), "shift": shape(width)}


def linear(inputs: int, outputs: int) -> dict[str, jax.ShapeDtypeStruct]:
    return {"w": shape(inputs, outputs), "b": shape(outputs)}


def dense(p: Weights, x: jax.Array) -> jax.Array:
    return x @ p["w"] + p["b"]
