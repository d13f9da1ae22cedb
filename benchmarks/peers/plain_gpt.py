"""A GPT in plain JAX, with or without scope names for its blocks."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from recompute.benchmarks.peers.peer import SMALL, Built, Remat, checkpointed, cross_entropy, descent, matrix, texts

Weights = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """The shape of the model and of a batch: `rows` sequences of `length` tokens, from a vocabulary of `words`."""

    rows: int
    length: int
    width: int
    heads: int
    layers: int
    words: int


def size_of(size: str) -> Size:
    """Return the model and batch shape for `SMALL` or `LARGE`."""
    return Size(8, 32, 32, 2, 3, 64) if size == SMALL else Size(8, 256, 128, 4, 4, 512)


def weights_of(seed: int, size: Size) -> Weights:
    """Draw the model's weights."""
    draw, wide = np.random.default_rng(seed), size.width

    def block() -> Weights:
        return {
            "norm1": jnp.ones(wide),
            "qkv": matrix(draw, wide, 3 * wide),
            "out": matrix(draw, wide, wide),
            "norm2": jnp.ones(wide),
            "up": matrix(draw, wide, 4 * wide),
            "down": matrix(draw, 4 * wide, wide),
        }

    return {
        "tokens": matrix(draw, size.words, wide),
        "places": matrix(draw, size.length, wide),
        "blocks": [block() for _ in range(size.layers)],
        "norm": jnp.ones(wide),
    }


def normalized(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Normalize the last axis, and multiply by `scale`."""
    mean, spread = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(spread + 1e-5) * scale


def attention(w: Weights, x: jax.Array, heads: int) -> jax.Array:
    """Apply causal attention to x of shape (rows, length, width)."""
    rows, length, width = x.shape
    q, k, v = jnp.split((x @ w["qkv"]).reshape(rows, length, heads, -1), 3, axis=-1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return mixed.reshape(x.shape) @ w["out"]


def block(w: Weights, x: jax.Array, heads: int) -> jax.Array:
    """Apply a Transformer block to x of shape (rows, length, width)."""
    x = x + attention(w, normalized(x, w["norm1"]), heads)
    return x + jax.nn.gelu(normalized(x, w["norm2"]) @ w["up"]) @ w["down"]


def loss_of(size: Size, remat: Remat, named: bool) -> Any:
    """Return the function `loss(weights, tokens, following)`. `named`: whether the blocks have scope names."""
    run = checkpointed(lambda w, x: block(w, x, size.heads), remat)

    def loss(weights: Weights, tokens: jax.Array, following: jax.Array) -> jax.Array:
        x = weights["tokens"][tokens] + weights["places"]
        for number, w in enumerate(weights["blocks"]):
            with jax.named_scope(f"block{number}") if named else nullcontext():
                x = run(w, x)
        return cross_entropy(normalized(x, weights["norm"]) @ weights["tokens"].T, following)

    return loss


def build(remat: Remat, size: str, named: bool) -> Built:
    """Build the training step of the given size, plain or with remat."""
    shape = size_of(size)
    step = descent(loss_of(shape, remat, named))
    return Built(step, lambda seed: (weights_of(seed, shape), *texts(seed, shape.rows, shape.length, shape.words)))
