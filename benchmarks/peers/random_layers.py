"""Layers of random steps. Each maps values of one shape, with features last, to a value of the same shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from recompute.benchmarks.peers.peer import matrix

Array = jax.Array
Weights = dict[str, Array]


@dataclass(frozen=True)
class Layer:
    """A layer of a random step.

    Attributes:
        weights: Draws the weights for a width.
        run: Applies the layer to weights, values and a random key.
        reads: The number of values that it reads.
    """

    weights: Callable[[np.random.Generator, int], Weights]
    run: Callable[[Weights, tuple[Array, ...], Array], Array]
    reads: int = 1


def square(draw: np.random.Generator, width: int) -> Weights:
    """Draw a square matrix."""
    return {"w": matrix(draw, width, width)}


def wide(draw: np.random.Generator, width: int) -> Weights:
    """Draw the two matrices of an MLP with a hidden layer of four times the width."""
    return {"up": matrix(draw, width, 4 * width), "down": matrix(draw, 4 * width, width)}


def pair(draw: np.random.Generator, width: int) -> Weights:
    """Draw two square matrices."""
    return {"w": matrix(draw, width, width), "v": matrix(draw, width, width)}


def scale(draw: np.random.Generator, width: int) -> Weights:
    """Draw a vector of factors near 1."""
    return {"scale": jnp.asarray(draw.uniform(0.5, 1.5, width), jnp.float32)}


def nothing(draw: np.random.Generator, width: int) -> Weights:
    """Return no weights."""
    return {}


def stacked(draw: np.random.Generator, width: int) -> Weights:
    """Draw three square matrices in one array."""
    return {"w": jnp.stack([matrix(draw, width, width) for _ in range(3)])}


def kernel(draw: np.random.Generator, width: int) -> Weights:
    """Draw the kernel of a one-dimensional convolution."""
    return {"k": matrix(draw, 3, width, width)}


def image_kernel(draw: np.random.Generator, width: int) -> Weights:
    """Draw the kernel of a two-dimensional convolution."""
    return {"k": matrix(draw, 3, 3, width, width)}


def projections(draw: np.random.Generator, width: int) -> Weights:
    """Draw the four matrices of attention."""
    return {name: matrix(draw, width, width) for name in "qkvo"}


def joined(draw: np.random.Generator, width: int) -> Weights:
    """Draw a matrix that maps two concatenated values to one."""
    return {"w": matrix(draw, 2 * width, width)}


@jax.custom_vjp
def squashed(x: Array) -> Array:
    """Map x to x / (1 +
    x
    ), with a gradient of its own.
    """
    return x / (1 + jnp.abs(x))


def _squashed_forward(x: Array) -> tuple[Array, Array]:
    return squashed(x), x


def _squashed_backward(x: Array, g: Array) -> tuple[Array]:
    return (g / (1 + jnp.abs(x)) ** 2,)


squashed.defvjp(_squashed_forward, _squashed_backward)


def mlp(w: Weights, x: Array) -> Array:
    """Apply a residual MLP."""
    return x + jax.nn.gelu(x @ w["up"]) @ w["down"]


def norm(x: Array) -> Array:
    """Normalize the last axis."""
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attend(w: Weights, x: Array) -> Array:
    """Apply residual attention with two heads to x of shape (rows, length, width)."""
    q, k, v = ((x @ w[name]).reshape(*x.shape[:2], 2, -1) for name in "qkv")
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape)
    return x + mixed @ w["o"]


def conv(k: Array, x: Array, letters: str) -> Array:
    """Convolve, with the same extent, along the axes named by `letters`."""
    numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    return jax.lax.conv_general_dilated(x, k, (1,) * len(letters), "SAME", dimension_numbers=numbers)


def dropped(x: Array, key: Array) -> Array:
    """Apply dropout at a rate of 20 %."""
    return jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0)


def through_layers(w: Weights, x: Array) -> Array:
    """Apply stacked layers in a scan."""
    return jax.lax.scan(lambda x, w: (x + jnp.tanh(x @ w), None), x, w["w"])[0]


def either(w: Weights, x: Array) -> Array:
    """Apply one of two layers, selected by the sign of the sum."""
    return jax.lax.cond(x.sum() > 0, lambda x: jnp.tanh(x @ w["w"]), lambda x: jnp.sin(x @ w["v"]), x)


def narrow(w: Weights, x: Array) -> Array:
    """Apply a layer whose product is in bf16."""
    low = x.astype(jnp.bfloat16)
    return x + jax.nn.silu(low @ w["w"].astype(jnp.bfloat16)).astype(x.dtype)


LAYERS: Mapping[str, Layer] = {
    "dense": Layer(square, lambda w, x, _: jax.nn.relu(x[0] @ w["w"])),
    "tanh": Layer(square, lambda w, x, _: jnp.tanh(x[0] @ w["w"])),
    "mlp": Layer(wide, lambda w, x, _: mlp(w, x[0])),
    "checkpointed": Layer(wide, lambda w, x, _: jax.checkpoint(mlp)(w, x[0])),
    "norm": Layer(scale, lambda w, x, _: norm(x[0]) * w["scale"]),
    "rms": Layer(
        scale, lambda w, x, _: x[0] * jax.lax.rsqrt(jnp.mean(x[0] ** 2, -1, keepdims=True) + 1e-5) * w["scale"]
    ),
    "gate": Layer(pair, lambda w, x, _: jax.nn.sigmoid(x[0] @ w["w"]) * (x[0] @ w["v"])),
    "dropout": Layer(nothing, lambda w, x, key: dropped(x[0], key)),
    "residual": Layer(nothing, lambda w, x, _: 0.7 * (x[0] + x[1]), reads=2),
    "concat": Layer(joined, lambda w, x, _: jnp.concatenate(x, -1) @ w["w"], reads=2),
    "mix": Layer(square, lambda w, x, _: jnp.einsum("...i,ij,...j->...i", x[0], w["w"], jnp.tanh(x[1])), reads=2),
    "where": Layer(nothing, lambda w, x, _: jnp.where(x[0] > 0, jnp.sin(x[0]), x[1]), reads=2),
    "scan": Layer(stacked, lambda w, x, _: through_layers(w, x[0])),
    "cond": Layer(pair, lambda w, x, _: either(w, x[0])),
    "custom_vjp": Layer(square, lambda w, x, _: squashed(x[0] @ w["w"])),
    "bf16": Layer(square, lambda w, x, _: narrow(w, x[0])),
    "cumsum": Layer(nothing, lambda w, x, _: jnp.cumsum(x[0], 1) / np.sqrt(x[0].shape[1])),
    "sort": Layer(nothing, lambda w, x, _: jnp.sort(x[0], axis=-1)),
}
"""For values of any rank."""
SEQUENCES: Mapping[str, Layer] = {
    "attention": Layer(projections, lambda w, x, _: attend(w, x[0])),
    "conv": Layer(kernel, lambda w, x, _: x[0] + jax.nn.silu(conv(w["k"], x[0], "H"))),
}
IMAGES: Mapping[str, Layer] = {
    "conv2d": Layer(image_kernel, lambda w, x, _: x[0] + jax.nn.relu(conv(w["k"], x[0], "HW"))),
    "pooled": Layer(square, lambda w, x, _: x[0] * jax.nn.sigmoid(x[0].mean((1, 2), keepdims=True) @ w["w"])),
}
