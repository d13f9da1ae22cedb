"""Layers of random steps. Each layer maps values of one shape, with the features last, to a value of the same shape."""

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
class RandomLayer:
    """A layer of a random step.

    Attributes:
        weights: Draws the weights for a width.
        run: Applies the layer to weights, input values and a random key.
        reads: The number of input values.
    """

    weights: Callable[[np.random.Generator, int], Weights]
    run: Callable[[Weights, tuple[Array, ...], Array], Array]
    reads: int = 1


def square_matrix(draw: np.random.Generator, width: int) -> Weights:
    """Draw a square matrix."""
    return {"w": matrix(draw, width, width)}


def mlp_matrices(draw: np.random.Generator, width: int) -> Weights:
    """Draw the two matrices of an MLP whose hidden layer is four times as wide as its input."""
    return {"up": matrix(draw, width, 4 * width), "down": matrix(draw, 4 * width, width)}


def two_matrices(draw: np.random.Generator, width: int) -> Weights:
    """Draw two square matrices."""
    return {"w": matrix(draw, width, width), "v": matrix(draw, width, width)}


def scale_vector(draw: np.random.Generator, width: int) -> Weights:
    """Draw a vector of scale factors near 1."""
    return {"scale": jnp.asarray(draw.uniform(0.5, 1.5, width), jnp.float32)}


def no_weights(draw: np.random.Generator, width: int) -> Weights:
    """Return no weights."""
    return {}


def stacked_matrices(draw: np.random.Generator, width: int) -> Weights:
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


def joining_matrix(draw: np.random.Generator, width: int) -> Weights:
    """Draw a matrix that maps two concatenated values to one value."""
    return {"w": matrix(draw, 2 * width, width)}


@jax.custom_vjp
def softsign(x: Array) -> Array:
    """Map x to x / (1 + abs(x)), with a custom gradient."""
    return x / (1 + jnp.abs(x))


def _softsign_forward(x: Array) -> tuple[Array, Array]:
    return softsign(x), x


def _softsign_backward(x: Array, g: Array) -> tuple[Array]:
    return (g / (1 + jnp.abs(x)) ** 2,)


softsign.defvjp(_softsign_forward, _softsign_backward)


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
    """Convolve x along the axes that `letters` names, without changing their sizes."""
    numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    return jax.lax.conv_general_dilated(x, k, (1,) * len(letters), "SAME", dimension_numbers=numbers)


def dropout(x: Array, key: Array) -> Array:
    """Apply dropout with a rate of 20 %."""
    return jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x / 0.8, 0)


def scan_layers(w: Weights, x: Array) -> Array:
    """Apply stacked residual layers in a scan."""
    return jax.lax.scan(lambda x, w: (x + jnp.tanh(x @ w), None), x, w["w"])[0]


def conditional_layer(w: Weights, x: Array) -> Array:
    """Apply one of two layers, depending on the sign of the sum of x."""
    return jax.lax.cond(x.sum() > 0, lambda x: jnp.tanh(x @ w["w"]), lambda x: jnp.sin(x @ w["v"]), x)


def bf16_layer(w: Weights, x: Array) -> Array:
    """Apply a residual layer whose matrix product is in bf16."""
    low = x.astype(jnp.bfloat16)
    return x + jax.nn.silu(low @ w["w"].astype(jnp.bfloat16)).astype(x.dtype)


LAYERS: Mapping[str, RandomLayer] = {
    "dense": RandomLayer(square_matrix, lambda w, x, _: jax.nn.relu(x[0] @ w["w"])),
    "tanh": RandomLayer(square_matrix, lambda w, x, _: jnp.tanh(x[0] @ w["w"])),
    "mlp": RandomLayer(mlp_matrices, lambda w, x, _: mlp(w, x[0])),
    "checkpointed": RandomLayer(mlp_matrices, lambda w, x, _: jax.checkpoint(mlp)(w, x[0])),
    "norm": RandomLayer(scale_vector, lambda w, x, _: norm(x[0]) * w["scale"]),
    "rms": RandomLayer(
        scale_vector, lambda w, x, _: x[0] * jax.lax.rsqrt(jnp.mean(x[0] ** 2, -1, keepdims=True) + 1e-5) * w["scale"]
    ),
    "gate": RandomLayer(two_matrices, lambda w, x, _: jax.nn.sigmoid(x[0] @ w["w"]) * (x[0] @ w["v"])),
    "dropout": RandomLayer(no_weights, lambda w, x, key: dropout(x[0], key)),
    "residual": RandomLayer(no_weights, lambda w, x, _: 0.7 * (x[0] + x[1]), reads=2),
    "concat": RandomLayer(joining_matrix, lambda w, x, _: jnp.concatenate(x, -1) @ w["w"], reads=2),
    "mix": RandomLayer(
        square_matrix, lambda w, x, _: jnp.einsum("...i,ij,...j->...i", x[0], w["w"], jnp.tanh(x[1])), reads=2
    ),
    "where": RandomLayer(no_weights, lambda w, x, _: jnp.where(x[0] > 0, jnp.sin(x[0]), x[1]), reads=2),
    "scan": RandomLayer(stacked_matrices, lambda w, x, _: scan_layers(w, x[0])),
    "cond": RandomLayer(two_matrices, lambda w, x, _: conditional_layer(w, x[0])),
    "custom_vjp": RandomLayer(square_matrix, lambda w, x, _: softsign(x[0] @ w["w"])),
    "bf16": RandomLayer(square_matrix, lambda w, x, _: bf16_layer(w, x[0])),
    "cumsum": RandomLayer(no_weights, lambda w, x, _: jnp.cumsum(x[0], 1) / np.sqrt(x[0].shape[1])),
    "sort": RandomLayer(no_weights, lambda w, x, _: jnp.sort(x[0], axis=-1)),
}
"""The layers for values of any rank."""
SEQUENCES: Mapping[str, RandomLayer] = {
    "attention": RandomLayer(projections, lambda w, x, _: attend(w, x[0])),
    "conv": RandomLayer(kernel, lambda w, x, _: x[0] + jax.nn.silu(conv(w["k"], x[0], "H"))),
}
IMAGES: Mapping[str, RandomLayer] = {
    "conv2d": RandomLayer(image_kernel, lambda w, x, _: x[0] + jax.nn.relu(conv(w["k"], x[0], "HW"))),
    "pooled": RandomLayer(
        square_matrix, lambda w, x, _: x[0] * jax.nn.sigmoid(x[0].mean((1, 2), keepdims=True) @ w["w"])
    ),
}
