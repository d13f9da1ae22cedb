"""Layers of the held-back half, with the channels first, as in PyTorch, and weights in tuples."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from recompute.benchmarks.unseen.step_parts import shape

Pair = tuple[Any, Any]


def conv(x: jax.Array, w: jax.Array, stride: int = 1, groups: int = 1, dilation: int = 1) -> jax.Array:
    """Apply a convolution with the channels first, with explicit padding that preserves the size at stride 1."""
    pads = [((side - 1) * dilation // 2, side // 2 * dilation) for side in w.shape[2:]]
    return lax.conv_general_dilated(
        x,
        w,
        (stride,) * len(pads),
        pads,
        rhs_dilation=(dilation,) * len(pads),
        dimension_numbers=("NCHW", "OIHW", "NCHW") if len(pads) == 2 else ("NCW", "OIW", "NCW"),
        feature_group_count=groups,
    )


def transposed_convolution(x: jax.Array, w: jax.Array) -> jax.Array:
    """Apply a transposed convolution with stride 2 by dilating the input. `w` has the shape [O, I, 4, 4]."""
    return lax.conv_general_dilated(
        x, w, (1, 1), [(2, 2), (2, 2)], lhs_dilation=(2, 2), dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def channels(vector: jax.Array, x: jax.Array) -> jax.Array:
    return vector.reshape(-1, *[1] * (x.ndim - 2))


def batch_norm(p: Pair, x: jax.Array) -> jax.Array:
    axes = (0, *range(2, x.ndim))
    mean, variance = jnp.mean(x, axes, keepdims=True), jnp.var(x, axes, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * channels(p[0], x) + channels(p[1], x)


def group_norm(p: Pair, x: jax.Array, groups: int) -> jax.Array:
    parts = x.reshape(x.shape[0], groups, -1)
    mean = parts.mean(-1, keepdims=True)
    variance = (parts * parts).mean(-1, keepdims=True) - mean * mean
    parts = (parts - mean) * lax.rsqrt(jnp.maximum(variance, 0.0) + 1e-6)
    return parts.reshape(x.shape) * channels(p[0], x) + channels(p[1], x)


def layer_norm(p: Pair, x: jax.Array) -> jax.Array:
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-6) * p[0] + p[1]


def affine(p: Pair, x: jax.Array) -> jax.Array:
    return jnp.dot(x, p[0]) + p[1]


def attention(q: jax.Array, k: jax.Array, v: jax.Array, heads: int, causal: bool = False) -> jax.Array:
    """Apply multi-head attention. Queries, keys, values and the result have shape [batch, length, width]."""

    def split(x: jax.Array) -> jax.Array:
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = split(q), split(k), split(v)
    scores = jnp.matmul(q, k.swapaxes(-1, -2)) / jnp.sqrt(q.shape[-1])
    if causal:
        rows, columns = (lax.broadcasted_iota(jnp.int32, scores.shape, axis) for axis in (2, 3))
        scores = jnp.where(rows >= columns, scores, jnp.finfo(scores.dtype).min)
    mixed = jnp.matmul(jax.nn.softmax(scores, axis=-1), v)
    return mixed.transpose(0, 2, 1, 3).reshape(mixed.shape[0], mixed.shape[2], -1)


def log_loss(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Compute the cross entropy with a one-hot product and a logsumexp."""
    hot = jax.nn.one_hot(labels, logits.shape[-1], dtype=logits.dtype)
    return jnp.mean(jax.scipy.special.logsumexp(logits, axis=-1) - jnp.sum(hot * logits, axis=-1))


def vectors(width: int) -> Pair:
    return (shape(width), shape(width))


def matrix(inputs: int, outputs: int) -> Pair:
    return (shape(inputs, outputs), shape(outputs))
